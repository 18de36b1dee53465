//! Arrays in NumPy's NPY format, version 1.0.

/// Rows of single precision.
pub fn rows(values: &[f32], cols: usize) -> Vec<u8> {
    let shape = format!("({}, {cols})", values.len() / cols.max(1));
    file("<f4", &shape, values.iter().flat_map(|x| x.to_le_bytes()))
}

/// A list of doubles.
pub fn list(values: &[f64]) -> Vec<u8> {
    file("<f8", &format!("({},)", values.len()), values.iter().flat_map(|x| x.to_le_bytes()))
}

fn file(kind: &str, shape: &str, data: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    // The data begins at a multiple of 64.
    let before = b"\x93NUMPY\x01\x00".len() + 2;
    let filled = (before + header.len() + 1).next_multiple_of(64) - before - 1;
    header = format!("{header:filled$}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip_data::Matrix;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let values: Vec<f32> = (0..21).map(|i| i as f32 / 7.0).collect();
        std::fs::write(&path, rows(&values, 3)).unwrap();
        let read = Matrix::read(&path).unwrap();
        assert_eq!((read.rows(), read.cols()), (7, 3));
        assert!(read.data().iter().zip(&values).all(|(a, b)| *a == f64::from(*b)));
        std::fs::write(&path, list(&[0.1, -2.0])).unwrap();
        let read = Matrix::read(&path).unwrap();
        assert_eq!((read.rows(), read.data()), (2, &[0.1, -2.0][..]));
        assert_eq!(list(&[]).len() % 64, 0);
    }
}
