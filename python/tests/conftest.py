"""One thread for PyTorch: the tensors are tiny, and threads that wait for each other are slow."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
