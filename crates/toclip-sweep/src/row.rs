//! The result of a cell, and its bytes in a log.

use toclip_experiment::Method;

/// The result of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// The number of the cell, from 0.
    pub cell: u64,
    /// A number for each of [`Sweep::columns`](crate::Sweep::columns); NaN where there is none.
    pub values: Vec<f64>,
    /// Why the cell failed, if it did.
    pub error: Option<String>,
    /// The curves, if they are kept.
    pub curves: Vec<CellCurve>,
}

/// A curve of a cell: risk or loss along time, of an ensemble the median and the band.
#[derive(Debug, Clone, PartialEq)]
pub struct CellCurve {
    /// Of which method.
    pub method: Method,
    /// The times that it reached.
    pub times: Vec<f64>,
    /// Risk or loss at those times.
    pub value: Vec<f64>,
    /// The lower end of the band; empty for a deterministic method.
    pub low: Vec<f64>,
    /// The upper end.
    pub high: Vec<f64>,
}

impl Row {
    /// The row as bytes, from which [`Row::decode`] gives the same bits.
    ///
    /// ```
    /// use toclip_sweep::Row;
    /// let row = Row { cell: 3, values: vec![0.1, f64::INFINITY], ..Row::default() };
    /// assert_eq!(Row::decode(&row.encode()), Some(row.clone()));
    /// assert_eq!(Row::cell_of(&row.encode()), Some(3));
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.cell.to_le_bytes().to_vec();
        put_numbers(&mut bytes, &self.values);
        let error = self.error.as_deref().unwrap_or_default();
        put_length(&mut bytes, error.len());
        bytes.extend(error.as_bytes());
        put_length(&mut bytes, self.curves.len());
        for curve in &self.curves {
            let place = Method::ALL.iter().position(|method| *method == curve.method);
            put_length(&mut bytes, place.unwrap_or_default());
            for numbers in [&curve.times, &curve.value, &curve.low, &curve.high] {
                put_numbers(&mut bytes, numbers);
            }
        }
        bytes
    }

    /// The row of these bytes; `None` if they are no row.
    pub fn decode(bytes: &[u8]) -> Option<Row> {
        let mut rest = bytes;
        let cell = u64::from_le_bytes(take(&mut rest)?);
        let values = numbers(&mut rest)?;
        let length = length(&mut rest)?;
        let (error, after) = rest.split_at_checked(length)?;
        rest = after;
        let error = String::from_utf8(error.to_vec()).ok()?;
        let count = self::length(&mut rest)?;
        let mut curves = Vec::new();
        for _ in 0..count {
            let method = *Method::ALL.get(self::length(&mut rest)?)?;
            let [times, value, low, high] = [
                numbers(&mut rest)?,
                numbers(&mut rest)?,
                numbers(&mut rest)?,
                numbers(&mut rest)?,
            ];
            curves.push(CellCurve { method, times, value, low, high });
        }
        let error = Some(error).filter(|error| !error.is_empty());
        rest.is_empty().then_some(Row { cell, values, error, curves })
    }

    /// The number of the cell alone.
    pub fn cell_of(bytes: &[u8]) -> Option<u64> {
        bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend((length as u64).to_le_bytes());
}

fn put_numbers(bytes: &mut Vec<u8>, numbers: &[f64]) {
    put_length(bytes, numbers.len());
    bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*chunk)
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(take(rest)?)).ok()
}

fn numbers(rest: &mut &[u8]) -> Option<Vec<f64>> {
    let count = length(rest)?;
    let (bytes, after) = rest.split_at_checked(count.checked_mul(8)?)?;
    *rest = after;
    Some(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row() -> Row {
        let curve = CellCurve {
            method: Method::Sgd,
            times: vec![0.0, 1.0],
            value: vec![1.0, 0.5],
            low: vec![0.9, 0.4],
            high: vec![1.1, 0.6],
        };
        let error = Some("the ODE: too stiff".into());
        Row { cell: 7, values: vec![0.5, 1e-300], error, curves: vec![curve] }
    }

    #[test]
    fn a_row_comes_back_and_no_part_of_one_does() {
        let bytes = row().encode();
        assert_eq!(Row::decode(&bytes), Some(row()));
        for length in 0..bytes.len() {
            assert_eq!(Row::decode(&bytes[..length]), None, "{length} bytes");
        }
    }

    proptest! {
        /// Damaged bytes are no row or another row, never a panic.
        #[test]
        fn damage_is_survived(at in 0usize..200, byte: u8) {
            let mut bytes = row().encode();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Row::decode(&bytes);
        }
    }
}
