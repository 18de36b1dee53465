"""Two-class data sets that come with scikit-learn, as CSV for `toclip fit --model logistic`.

    pip install scikit-learn
    python scripts/data/classes.py FOLDER

Writes digits.csv (even against odd digits; 8 × 8 pixels) and breast-cancer.csv (malignant against
benign; 30 standardised measurements). The last column, `class`, is 0 or 1.
"""

import csv
import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_digits


def write(path, inputs, classes, standardise):
    inputs = inputs[:, inputs.std(axis=0) > 0]
    if standardise:
        inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([f"x{j + 1}" for j in range(inputs.shape[1])] + ["class"])
        for x, y in zip(inputs, classes):
            rows.writerow([f"{v:.6g}" for v in x] + [int(y)])
    print(f"{path}: {inputs.shape[0]} samples, {inputs.shape[1]} columns, {classes.mean():.3f} of class 1")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    digits, cancer = load_digits(), load_breast_cancer()
    # Pixels are 0 to 16; random features see numbers of order one.
    write(folder / "digits.csv", digits.data / 16, digits.target % 2, standardise=False)
    write(folder / "breast-cancer.csv", cancer.data, 1 - cancer.target, standardise=True)
