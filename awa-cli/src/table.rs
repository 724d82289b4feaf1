//! Text in columns.

/// A table with a head, columns as wide as their widest cell, numbers to the right.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// The head of one column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Aligned to the left.
    Text(&'static str),
    /// Aligned to the right.
    Number(&'static str),
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Text(title) | Self::Number(title) => title,
        }
    }
}

impl Table {
    /// An empty table.
    pub(crate) fn new(head: impl Into<Vec<Column>>) -> Self {
        Self { head: head.into(), rows: Vec::new() }
    }

    /// Adds a row, one cell per column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        let cells = cells.into();
        assert_eq!(cells.len(), self.head.len(), "a row has one cell per column");
        self.rows.push(cells);
    }

    /// The table as lines, without a line end after the last.
    pub(crate) fn render(&self) -> String {
        let titles: Vec<String> = self.head.iter().map(|column| column.title().to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&titles).chain(&self.rows).collect();
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let render = |line: &&Vec<String>| {
            let cells = line.iter().zip(&widths).zip(&self.head).map(|((cell, width), column)| match column {
                Column::Text(_) => format!("{cell:<width$}"),
                Column::Number(_) => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        lines.iter().map(render).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([Column::Text("name"), Column::Number("n"), Column::Text("rest")]);
        table.row(["größer".to_owned(), "5".to_owned(), String::new()]);
        table.row(["a".to_owned(), "1234".to_owned(), "x".to_owned()]);
        assert_eq!(table.render(), "name       n  rest\ngrößer     5\na       1234  x");
    }
}
