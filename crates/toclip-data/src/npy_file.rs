//! Matrices in NumPy's NPY.

use crate::{Error, Matrix, Result};
use npyz::{DType, NpyFile, NpyHeader, Order, TypeChar};
use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;

pub(crate) fn read(path: &Path, mut reader: BufReader<File>) -> Result<Matrix> {
    let header = NpyHeader::from_reader(&mut reader)
        .map_err(|e| Error::file(path, format!("the NPY header is not readable: {e}")))?;
    let shape = header.shape().to_vec();
    let (rows, cols) = match shape[..] {
        [rows] => (rows, 1),
        [rows, cols] => (rows, cols),
        _ => {
            let found = shape.len();
            return Err(Error::file(path, format!("the array has {found} dimensions, not 1 or 2")));
        }
    };
    let order = header.order();
    check_length(path, &mut reader, &header, rows, cols)?;
    let single = is_single(&header.dtype());
    let values = values(path, NpyFile::with_header(header, reader))?;
    let (rows, cols) = (rows as usize, cols as usize);
    let values = match order {
        Order::C => values,
        Order::Fortran => {
            let transposed = |i: usize| values[(i % cols.max(1)) * rows + i / cols.max(1)];
            (0..values.len()).map(transposed).collect()
        }
    };
    if let Some(i) = values.iter().position(|v| !v.is_finite()) {
        let (row, col) = ((i / cols + 1) as u64, i % cols + 1);
        let message = format!("{} is not allowed; all numbers must be finite", values[i]);
        return Err(Error::cell(path, row, col, message));
    }
    let mut matrix = Matrix::new(rows, cols, values).map_err(|e| e.in_file(path))?;
    if single {
        matrix.rounding = f64::from(f32::EPSILON);
    }
    Ok(matrix)
}

/// A damaged header can claim any size: compare with what is there before making room for it.
pub(crate) fn check_length(
    path: &Path,
    reader: &mut BufReader<File>,
    header: &NpyHeader,
    rows: u64,
    cols: u64,
) -> Result<()> {
    let position = reader.stream_position().map_err(|e| Error::io(path, e))?;
    let length = reader.get_ref().metadata().map_err(|e| Error::io(path, e))?.len();
    let size = header.dtype().num_bytes().unwrap_or(0) as u64;
    let needed = rows.checked_mul(cols).and_then(|n| n.checked_mul(size));
    let there = length.saturating_sub(position);
    if needed.is_none_or(|n| n > there) {
        let message = format!("the header promises {rows} x {cols} numbers of {size} bytes, ")
            + &format!("but only {there} bytes follow");
        return Err(Error::file(path, message));
    }
    Ok(())
}

fn is_single(dtype: &DType) -> bool {
    matches!(dtype, DType::Plain(t) if t.type_char() == TypeChar::Float && t.size_field() == 4)
}

fn values(path: &Path, file: NpyFile<BufReader<File>>) -> Result<Vec<f64>> {
    let dtype = file.header().dtype();
    let kind = match &dtype {
        DType::Plain(t) => Some((t.type_char(), t.size_field())),
        _ => None,
    };
    let read = match kind {
        Some((TypeChar::Float, 8)) => file.into_vec::<f64>(),
        Some((TypeChar::Float, 4)) => widen::<f32>(file),
        Some((TypeChar::Int, 1)) => widen::<i8>(file),
        Some((TypeChar::Int, 2)) => widen::<i16>(file),
        Some((TypeChar::Int, 4)) => widen::<i32>(file),
        // Above 2^53 rounded to the nearest f64.
        Some((TypeChar::Int, 8)) => file.into_vec::<i64>().map(|v| each(v, |x| x as f64)),
        Some((TypeChar::Uint, 1)) => widen::<u8>(file),
        Some((TypeChar::Uint, 2)) => widen::<u16>(file),
        Some((TypeChar::Uint, 4)) => widen::<u32>(file),
        Some((TypeChar::Uint, 8)) => file.into_vec::<u64>().map(|v| each(v, |x| x as f64)),
        Some((TypeChar::Bool, 1)) => file.into_vec::<bool>().map(|v| each(v, f64::from)),
        _ => {
            let message = format!(
                "numbers of type {} are not read; convert with .astype('f8')",
                dtype.descr()
            );
            return Err(Error::file(path, message));
        }
    };
    read.map_err(|e| Error::io(path, e))
}

fn widen<T: npyz::Deserialize + Into<f64>>(
    file: NpyFile<BufReader<File>>,
) -> std::io::Result<Vec<f64>> {
    file.into_vec::<T>().map(|v| each(v, T::into))
}

fn each<T>(values: Vec<T>, to: impl Fn(T) -> f64) -> Vec<f64> {
    values.into_iter().map(to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// An NPY file, version 1.0, written out by hand after NumPy's format specification.
    fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> (TempDir, Result<Matrix>) {
        let fortran = if fortran { "True" } else { "False" };
        let mut header =
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.npy");
        std::fs::write(&path, bytes).unwrap();
        let read = Matrix::read(&path);
        (dir, read)
    }

    fn bytes<const N: usize, T>(values: &[T], to: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(to).collect()
    }

    fn message(descr: &str, shape: &str, data: &[u8]) -> String {
        npy(descr, false, shape, data).1.unwrap_err().to_string()
    }

    #[test]
    fn c_and_fortran_order() {
        let data = bytes(&[1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0], |v| v.to_le_bytes());
        let c = npy("'<f8'", false, "(2, 3)", &data).1.unwrap();
        assert_eq!((c.rows(), c.cols(), c.row(1)), (2, 3, &[4.0, 5.0, 6.0][..]));
        let f = npy("'<f8'", true, "(2, 3)", &data).1.unwrap();
        assert_eq!((f.row(0), f.row(1)), (&[1.0, 3.0, 5.0][..], &[2.0, 4.0, 6.0][..]));
        let flat = npy("'<f8'", false, "(6,)", &data).1.unwrap();
        assert_eq!((flat.rows(), flat.cols()), (6, 1));
    }

    #[test]
    fn every_type_of_number() {
        let numbers = [
            ("'<f4'", bytes(&[1.0_f32, 2.0], |v| v.to_le_bytes())),
            ("'>f8'", bytes(&[1.0_f64, 2.0], |v| v.to_be_bytes())),
            ("'<i4'", bytes(&[1_i32, 2], |v| v.to_le_bytes())),
            ("'<i8'", bytes(&[1_i64, 2], |v| v.to_le_bytes())),
            ("'>u2'", bytes(&[1_u16, 2], |v| v.to_be_bytes())),
            ("'|u1'", vec![1, 2]),
            ("'|i1'", vec![1, 2]),
        ];
        for (descr, data) in numbers {
            assert_eq!(npy(descr, false, "(1, 2)", &data).1.unwrap().data(), [1.0, 2.0], "{descr}");
        }
        let yes = npy("'|b1'", false, "(2,)", &[0, 1]).1.unwrap();
        assert_eq!(yes.data(), [0.0, 1.0]);
    }

    #[test]
    fn other_files_get_a_sentence() {
        let two = bytes(&[1.0_f64, 2.0], |v| v.to_le_bytes());
        assert!(message("'<c16'", "(1,)", &two).contains(".astype('f8')"));
        assert!(message("'<f2'", "(2,)", &two).contains("<f2"));
        assert!(message("[('a', '<f8')]", "(2,)", &two).contains("'a'"));
        assert!(message("'<f8'", "(1, 1, 2)", &two).contains("3 dimensions"));
        assert!(message("'<f8'", "()", &two).contains("0 dimensions"));
        assert!(message("'<f8'", "(0, 3)", &[]).contains("empty"));
        assert!(message("'<f8'", "(3,)", &two).contains("only 16 bytes follow"));
        assert!(message("'<f8'", "(1152921504606846976, 8)", &two).contains("bytes follow"));
        assert!(message("'<f8'", "(2", &two).contains("header"));
        let nan = bytes(&[1.0, f64::NAN], |v| v.to_le_bytes());
        assert!(message("'<f8'", "(2,)", &nan).contains("line 2, column 1: NaN"));
    }
}
