//! Tables: columns of the same length, written as CSV and as Parquet.

mod csv;
mod parquet;
mod trajectory;

pub use csv::render as csv;
pub use parquet::render as parquet;
pub use trajectory::trajectory;

/// Columns side by side. A value that is missing is an empty cell of the CSV and a null of the
/// Parquet, never NaN.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    pub columns: Vec<Column>,
}

/// A column with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: &'static str,
    pub values: Values,
}

/// What is in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    Text(Vec<&'static str>),
    Numbers(Vec<Option<f64>>),
    Counts(Vec<Option<u64>>),
}

impl Table {
    pub fn text(mut self, name: &'static str, values: Vec<&'static str>) -> Self {
        self.columns.push(Column { name, values: Values::Text(values) });
        self
    }

    /// What is not a number is missing.
    pub fn numbers(mut self, name: &'static str, values: Vec<Option<f64>>) -> Self {
        let values = values.into_iter().map(|v| v.filter(|v| !v.is_nan())).collect();
        self.columns.push(Column { name, values: Values::Numbers(values) });
        self
    }

    pub fn counts(mut self, name: &'static str, values: Vec<Option<u64>>) -> Self {
        self.columns.push(Column { name, values: Values::Counts(values) });
        self
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.iter().map(Column::len).min().unwrap_or(0)
    }
}

impl Column {
    fn len(&self) -> usize {
        match &self.values {
            Values::Text(values) => values.len(),
            Values::Numbers(values) => values.len(),
            Values::Counts(values) => values.len(),
        }
    }
}
