//! Columns that line up.

use super::terminal::{Ink, Terminal, clip_function, clip_left, clip_right, visible};

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Text, flush left, never cut.
    Left,
    /// A number, flush right, never cut.
    Right,
    /// Text that gives way when the line is too long, cut on the right.
    Text,
    /// A function's name that gives way, cut at its module path.
    Function,
    /// A file and line that gives way, cut on the left.
    Place,
}

/// Rows under a heading.
pub(crate) struct Table {
    columns: Vec<(&'static str, Column)>,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: &str = "  ";
/// A column that gives way keeps this much.
const WIDTH_MIN: usize = 12;

impl Table {
    /// An empty table.
    pub(crate) fn new(columns: &[(&'static str, Column)]) -> Table {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; one cell a column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len(), "a cell for every column");
        self.rows.push(cells.iter().map(|cell| visible(cell)).collect());
    }

    /// The lines, heading first, each at most as wide as the terminal where the columns allow it.
    pub(crate) fn lines(&self, terminal: &Terminal) -> Vec<String> {
        let widths = self.widths(if terminal.cuts { terminal.width } else { usize::MAX });
        let heading: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut lines = vec![terminal.paint(Ink::Faint, &self.line(&heading, &widths))];
        lines.extend(self.rows.iter().map(|row| self.line(row, &widths)));
        lines
    }

    /// The natural width of every column; where the line is too long, columns that give way share the loss:
    /// places first, then the widest.
    fn widths(&self, width_max: usize) -> Vec<usize> {
        let length = |at: usize| self.rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, (name, _))| length(at).max(name.len()))
            .collect();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        while width_max < widths.iter().sum::<usize>() + gaps {
            let elastic = |at: &usize| !matches!(self.columns[*at].1, Column::Left | Column::Right) && WIDTH_MIN < widths[*at];
            let wanted = |at: &usize| (self.columns[*at].1 == Column::Place, widths[*at]);
            let Some(at) = (0..widths.len()).filter(elastic).max_by_key(wanted) else {
                break;
            };
            widths[at] -= 1;
        }
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (at, ((_, column), width)) in self.columns.iter().zip(widths).enumerate() {
            if at > 0 {
                line.push_str(GAP);
            }
            let cell = match column {
                Column::Function => clip_function(&cells[at], *width),
                Column::Place => clip_left(&cells[at], *width),
                Column::Text => clip_right(&cells[at], *width),
                _ => cells[at].clone(),
            };
            match column {
                Column::Right => line.push_str(&format!("{cell:>width$}")),
                _ => line.push_str(&format!("{cell:<width$}")),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_gives_way_and_numbers_do_not() {
        let mut table = Table::new(&[("function", Column::Function), ("samples", Column::Right), ("file", Column::Text)]);
        table.row([
            "some::deep::module::path::function".into(),
            "12".into(),
            "src/very/long/path/of/a/file.rs:120".into(),
        ]);
        let lines = table.lines(&Terminal {
            width: 50,
            cuts: true,
            ..Terminal::PLAIN
        });
        assert!(lines.iter().all(|line| line.chars().count() <= 50), "{lines:?}");
        assert!(lines[1].contains(" 12 "), "{lines:?}");
    }
}
