use arrow::array::{ArrayRef, MapBuilder, RecordBatch, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use spanflame_testkit::Random;

use super::*;

/// Maps, one a row: keys with values.
type Rows = Vec<Vec<(String, String)>>;

fn encode(rows: &Rows, properties: WriterPropertiesBuilder) -> Bytes {
    let value = Field::new("values", DataType::Utf8, false);
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new()).with_values_field(value);
    for row in rows {
        for (key, value) in row {
            maps.keys().append_value(key);
            maps.values().append_value(value);
        }
        maps.append(true).expect("keys and values are as many");
    }
    let texts: StringArray = rows.iter().map(|row| Some(row.len().to_string())).collect();
    let columns: [(&str, ArrayRef); 2] = [("map", Arc::new(maps.finish())), ("text", Arc::new(texts))];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, false))).expect("columns are equally long");
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).expect("a writer");
    writer.write(&batch).expect("is written");
    writer.into_inner().expect("is finished").into()
}

fn chunk(file: &Bytes, metadata: &ParquetMetaData, leaf: usize) -> Chunk {
    let (start, length) = metadata.row_group(0).column(leaf).byte_range();
    Chunk {
        bytes: file.slice(start as usize..(start + length) as usize),
        start,
    }
}

/// Rows by the page index, and counted.
fn rows_with(file: &Bytes, key: &str, value: &str) -> Result<Option<Vec<usize>>, ParquetError> {
    let indexed = rows_found(file, key, value, true)?;
    assert_eq!(indexed, rows_found(file, key, value, false)?);
    Ok(indexed)
}

fn rows_found(file: &Bytes, key: &str, value: &str, by_index: bool) -> Result<Option<Vec<usize>>, ParquetError> {
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(file)?;
    let group = metadata.row_group(0);
    let rows = group.num_rows() as usize;
    let search = |leaf: usize, wanted: &str, among: Option<&Positions>| {
        let mut test = |text: &str| text == wanted;
        let mut search = Search {
            test: &mut test,
            among,
            plain_pages: true,
        };
        let column = Column {
            column: group.column(leaf),
            rows,
            first_rows: by_index.then(|| metadata.offset_index().expect("is read")[0][leaf].page_locations().as_slice()),
        };
        find(chunk(file, &metadata, leaf), column, &mut search)
    };
    let Some(keys) = search(0, key, None)? else { return Ok(None) };
    let Some(values) = search(1, value, Some(&keys.values))? else {
        return Ok(None);
    };
    Ok(Some(keys.rows_of(&values.values)?.within(0, rows).collect()))
}

fn properties() -> WriterPropertiesBuilder {
    let zstd = ZstdLevel::try_new(1).expect("level 1 exists");
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(zstd))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(50)
}

/// Up to `entries` of so many keys, each with one of so many values; runs of rows that are alike, and rows without any.
fn random_rows(random: &mut Random, count: usize, (keys, values, entries): (u64, u64, u64)) -> Rows {
    let mut rows: Rows = Vec::new();
    while rows.len() < count {
        let row: Vec<(String, String)> = (0..random.below(entries + 1))
            .map(|_| (format!("key-{}", random.below(keys)), format!("value-{}", random.below(values))))
            .collect();
        let times = if random.below(20) == 0 { 40 } else { 1 };
        rows.extend(std::iter::repeat_n(row, times));
    }
    rows
}

fn check(rows: &Rows, file: &Bytes, keys: u64, values: u64) {
    for key in 0..keys.min(12) {
        for value in 0..values.min(12) {
            let (key, value) = (format!("key-{key}"), format!("value-{value}"));
            let has = |row: &Vec<(String, String)>| row.iter().any(|(k, v)| *k == key && *v == value);
            let expected: Vec<usize> = (0..rows.len()).filter(|row| has(&rows[*row])).collect();
            let found = rows_with(file, &key, &value).expect("is read").expect("is searched");
            assert_eq!(found, expected, "{key} = {value}");
        }
    }
}

#[test]
fn what_is_found_is_what_is_there() {
    let mut random = Random::new(7);
    for shape in [(3, 4, 4), (12, 3, 30), (300, 5, 20), (5, 3000, 6), (1, 1, 1)] {
        let rows = random_rows(&mut random, 1500, shape);
        let encodings = [
            properties(),
            properties().set_dictionary_enabled(false),
            // The dictionary is full in the middle of the column: pages of both kinds.
            properties().set_dictionary_page_size_limit(200),
        ];
        for encoding in encodings {
            check(&rows, &encode(&rows, encoding), shape.0, shape.1);
        }
    }
}

#[test]
fn text_of_a_column_is_found_by_its_codes() {
    let rows = random_rows(&mut Random::new(8), 3000, (3, 3, 9));
    let file = encode(&rows, properties());
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).expect("a footer");
    let column = Column {
        column: metadata.row_group(0).column(2),
        rows: rows.len(),
        first_rows: None,
    };
    let mut search = Search {
        test: &mut |text| text == "4",
        among: None,
        plain_pages: false,
    };
    let found = find(chunk(&file, &metadata, 2), column, &mut search).expect("is read");
    let found: Vec<usize> = found.expect("is searched").values.within(0, rows.len()).collect();
    let expected: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].len() == 4).collect();
    assert_eq!(found, expected);
}

#[test]
fn encodings_that_are_not_ours_are_left_to_the_library() {
    let rows = random_rows(&mut Random::new(9), 300, (3, 3, 3));
    let delta = properties().set_dictionary_enabled(false).set_encoding(Encoding::DELTA_BYTE_ARRAY);
    assert_eq!(rows_with(&encode(&rows, delta), "key-1", "value-1").expect("is read"), None);
}

#[test]
fn damaged_pages_are_survived() {
    let mut random = Random::new(10);
    let rows = random_rows(&mut random, 400, (20, 20, 5));
    let plain = properties().set_compression(Compression::UNCOMPRESSED);
    for encoding in [plain.clone(), plain.set_dictionary_enabled(false)] {
        let file = encode(&rows, encoding);
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).expect("a footer");
        let (start, length) = metadata.row_group(0).column(1).byte_range();
        for _ in 0..2000 {
            let mut damaged = file.to_vec();
            let at = random.below(start + length) as usize;
            damaged[at] ^= 1 << random.below(8);
            // Whatever comes out, it comes out.
            let _ = rows_found(&damaged.into(), "key-1", "value-1", random.percent(50));
        }
    }
}

#[test]
fn positions_are_sets() {
    let set = |positions: &[usize]| {
        let mut set = Positions::default();
        positions.iter().for_each(|at| set.insert(*at));
        set
    };
    let all = |set: &Positions| set.within(0, 1000).collect::<Vec<usize>>();
    let (a, b) = (set(&[0, 63, 64, 200]), set(&[63, 65, 200, 900]));
    assert_eq!(all(&a.clone().and(&b)), [63, 200]);
    assert_eq!(all(&b.clone().and(&a)), [63, 200]);
    assert_eq!(all(&a.clone().or(&b)), [0, 63, 64, 65, 200, 900]);
    assert_eq!(a.within(1, 200).collect::<Vec<usize>>(), [63, 64]);
    assert_eq!(a.within(64, 64).count(), 0);
    assert!(a.contains(200) && !a.contains(201) && Positions::default().is_empty());
}
