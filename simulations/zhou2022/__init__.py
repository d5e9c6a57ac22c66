"""Zhou et al. (2022): metrics and pools of judged link prediction."""
