"""`owkg theory`: exact moments and closed forms of one setting."""

from owkg.cli.errors import ended_at_once
from owkg.cli.inputs import noted
from owkg.cli.options import AnswerHistogram, Format, OutputFormat, Predictions, SettingOptions, histogram
from owkg.cli.output import show_metrics


def theory(
    *,
    setting: SettingOptions,
    num_answers: AnswerHistogram,
    prediction: Predictions = "classification",
    form: OutputFormat = Format.TABLE,
) -> None:
    """Compute the expected value of a rank metric of a model of known strength on an incomplete test set.

    owkg prints the exact mean and variance of the metric of one query; the approximation of Lemma 4.1 and its
    slope in the strength; and for MRR the logarithm of Theorem 4.1 with a bound on its error (Yang et al.,
    2022). Values that do not apply to a metric are null.

    Examples:
        owkg theory --strength 0.7 --sparsity 0.35 --num-answers 43 --num-entities 14505
        owkg theory --metric mrr --metric hits@10 --strength 0.7 --correlation 0.1 --sparsity 0.35
            --num-answers 43 --num-entities 14505
        owkg theory --strength 0.7 --sparsity 0.35 --num-answers 43 --num-entities 14505 --missing node
            --format json
        owkg theory --strength 0.7 --sparsity 0.35 --num-answers 12:300,43:200 --num-entities 14505
    """
    answers, weights = histogram(num_answers)
    model, numbers = setting.model(), setting.numbers(answers)
    from owkg.theory import closed_forms

    with ended_at_once(), noted():
        results = closed_forms(
            setting.metrics(), prediction=prediction, missing=model, answer_weights=weights, **numbers
        )
    shown = numbers | {"num_answers": num_answers if weights else answers}
    shown |= setting.shown_missing() | {"prediction": prediction}
    show_metrics("Closed forms under missing facts", shown, results, form)
