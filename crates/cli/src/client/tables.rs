//! The sizes of the store's tables, out of the text that Prometheus reads.

/// What a table holds in one tier of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableSize {
    pub(crate) table: String,
    /// How far files were merged: `flush`, `minutes`, `hours`.
    pub(crate) tier: String,
    pub(crate) files: u64,
    pub(crate) rows: u64,
    pub(crate) size_bytes: u64,
}

/// Reads lines such as `spanflame_table_files{table="spans",tier="flush"} 3`; parts without files are left out.
pub(super) fn read(metrics: &str) -> Vec<TableSize> {
    let mut tables: Vec<TableSize> = Vec::new();
    for line in metrics.lines() {
        let Some((name, table, tier, number)) = parse(line) else { continue };
        let known = tables.iter().position(|part| part.table == table && part.tier == tier);
        let at = known.unwrap_or_else(|| {
            tables.push(TableSize {
                table: table.to_owned(),
                tier: tier.to_owned(),
                ..TableSize::default()
            });
            tables.len() - 1
        });
        match name {
            "files" => tables[at].files = number,
            "rows" => tables[at].rows = number,
            _ => tables[at].size_bytes = number,
        }
    }
    tables.retain(|part| part.files > 0);
    tables
}

fn parse(line: &str) -> Option<(&str, &str, &str, u64)> {
    let rest = line.strip_prefix("spanflame_table_")?;
    let (name, rest) = rest
        .split_once('{')
        .filter(|(name, _)| matches!(*name, "files" | "rows" | "size_bytes"))?;
    let (labels, number) = rest.split_once("} ")?;
    let label = |key: &str| {
        labels
            .split(',')
            .find_map(|pair| pair.strip_prefix(key)?.strip_prefix("=\"")?.strip_suffix('"'))
    };
    Some((name, label("table")?, label("tier")?, number.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_from_what_prometheus_reads() {
        let metrics = "# HELP spanflame_table_files Files of a table in a tier.\n\
             spanflame_table_files{table=\"spans\",tier=\"flush\"} 3\n\
             spanflame_table_files{table=\"spans\",tier=\"hours\"} 0\n\
             spanflame_table_size_bytes{table=\"spans\",tier=\"flush\"} 4096\n\
             spanflame_table_rows{table=\"spans\",tier=\"flush\"} 12\n\
             spanflame_other{table=\"spans\"} 1\n";
        let expected = TableSize {
            table: "spans".to_owned(),
            tier: "flush".to_owned(),
            files: 3,
            rows: 12,
            size_bytes: 4096,
        };
        assert_eq!(read(metrics), [expected]);
    }
}
