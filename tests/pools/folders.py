"""Folders of graphs, and sheets that are filled in by the truth."""


def folder_of_graph(folder, run, before, truth):
    """A graph whose test split knows some answers; entities of the run are in train."""
    lines = ["\t".join(row) for row in before.select("entity", "relation", "answer").rows()]
    (folder / "test.txt").write_text("\n".join(lines) + "\n")
    answers = sorted(set(run["answer"]) | set(truth["answer"]))
    (folder / "train.txt").write_text("".join(f"x\tr0\t{answer}\n" for answer in answers))
    return folder


def filled(truth, sheet):
    """Fills a sheet in by true answers."""
    true = set(truth.select("query", "answer").rows())
    head, *lines = sheet.read_text().splitlines()
    cells = [line.split("\t") for line in lines]
    for cell in cells:
        cell[4] = str(int((cell[0], cell[1]) in true))
    sheet.write_text("\n".join([head, *("\t".join(cell) for cell in cells)]) + "\n")
