//! CSV: a header and rows, nothing else, as every tool reads it.

use super::{Column, Table, Values};

/// The table as text. Numbers have the fewest digits that read back as the same number.
pub fn render(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|c| c.name).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..table.rows() {
        let cells: Vec<String> = table.columns.iter().map(|c| cell(c, row)).collect();
        text += &cells.join(",");
        text += "\n";
    }
    text
}

fn cell(column: &Column, row: usize) -> String {
    match &column.values {
        Values::Text(values) => values[row].to_owned(),
        Values::Numbers(values) => values[row].map(|v| format!("{v:?}")).unwrap_or_default(),
        Values::Counts(values) => values[row].map(|v| v.to_string()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_bit_for_bit_and_missing_ones_are_empty() {
        let numbers = [0.1 + 0.2, 1e-300, 5e-324, f64::INFINITY, 1e16, -0.0];
        let mut values: Vec<Option<f64>> = numbers.iter().copied().map(Some).collect();
        values.extend([None, Some(f64::NAN)]);
        let table = Table::default()
            .text("method", vec!["ode"; 8])
            .numbers("x", values)
            .counts("n", (0..8).map(|n| (n % 2 == 0).then_some(n)).collect());
        let text = render(&table);
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap(), vec!["method", "x", "n"]);
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 8);
        for (row, number) in rows.iter().zip(numbers) {
            assert_eq!(row[1].parse::<f64>().unwrap().to_bits(), number.to_bits());
        }
        assert_eq!((&rows[6][1], &rows[7][1], &rows[1][2]), ("", "", ""));
        assert!(!text.contains("NaN"));
    }
}
