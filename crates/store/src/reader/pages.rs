//! Finds values on encoded pages, without decoding the column.
//!
//! A page of a dictionary holds codes, so text is compared once for each word of the dictionary and the codes are
//! looked at where they lie; of a map's values only those behind a wanted key. What is found is where values are
//! equal, exactly. A column that is encoded in another way than our files are is not read here but by the library.
//!
//! Parquet's format: data pages (version 1), levels and codes as runs (RLE and bit-packing hybrid).

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::RowSelection;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

/// The bytes of one column of one row group.
#[derive(Clone)]
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    /// Where they begin in the file.
    pub(super) start: u64,
}

/// A set of positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Positions {
    words: Vec<u64>,
}

/// Values of a column that were looked for.
pub(super) struct Found {
    /// Positions among the values that are there.
    pub(super) values: Positions,
    pages: Vec<PageLevels>,
}

/// Which rows the values of a page belong to.
struct PageLevels {
    first_value: usize,
    values: usize,
    /// Rows that begin on pages before.
    rows_before: usize,
    levels: usize,
    /// Runs of one bit a level; `None` where every row has just one value.
    repetition: Option<Bytes>,
    definition: Option<Bytes>,
}

/// A column of a row group.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) column: &'a ColumnChunkMetaData,
    /// How many rows the row group has.
    pub(super) rows: usize,
    /// The first row of each page, from the page index; without it rows are counted.
    pub(super) first_rows: Option<&'a [PageLocation]>,
}

/// A test of text, and of what has to be looked at.
pub(super) struct Search<'a> {
    pub(super) test: &'a mut dyn FnMut(&str) -> bool,
    /// Values at other positions are not looked at; `None` is all.
    pub(super) among: Option<&'a Positions>,
    /// Whether pages that hold text itself are searched too, with one test for each value.
    pub(super) plain_pages: bool,
}

/// Finds values of a text column of depth 0 or 1 (a column, or the keys or values of a map) that pass a test; `None` if it is
/// encoded in a way that is not searched.
pub(super) fn find(chunk: Chunk, column: Column<'_>, search: &mut Search<'_>) -> Result<Option<Found>, ParquetError> {
    let Column { column, rows, first_rows } = column;
    let descriptor = column.column_descr();
    let (max_repetition, max_definition) = (descriptor.max_rep_level(), descriptor.max_def_level());
    if max_repetition > 1 || max_definition > 1 {
        return Ok(None);
    }
    let mut reader = SerializedPageReader::new(Arc::new(chunk), column, rows, None)?;
    let mut passing: Vec<bool> = Vec::new();
    let mut found = Found {
        values: Positions::default(),
        pages: Vec::new(),
    };
    let (mut first_value, mut rows_before) = (0, 0);
    while let Some(page) = reader.get_next_page()? {
        let (mut bytes, levels, encoding) = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                passing = test_words(&buf, num_values as usize, search.test)?;
                continue;
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                ..
            } => (buf, num_values as usize, encoding),
            _ => return Ok(None),
        };
        let repetition = (max_repetition == 1).then(|| take_levels(&mut bytes)).transpose()?;
        let definition = (max_definition == 1).then(|| take_levels(&mut bytes)).transpose()?;
        let ones = |levels_of: &Option<Bytes>| levels_of.as_ref().map_or(Ok(levels), |bytes| count_ones(bytes, levels));
        let values = ones(&definition)?;
        if let Some(location) = first_rows.and_then(|pages| pages.get(found.pages.len())) {
            rows_before = usize::try_from(location.first_row_index).map_err(|_| damaged("its first row is negative"))?;
        }
        let page = PageLevels {
            first_value,
            values,
            rows_before,
            levels,
            definition,
            repetition,
        };
        if first_rows.is_none() {
            rows_before += levels - page.repetition.as_ref().map_or(Ok(0), |bytes| count_ones(bytes, levels))?;
        }
        let place = Place { first_value, values };
        match encoding {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => place.find_codes(&bytes, &passing, search.among, &mut found.values)?,
            Encoding::PLAIN if search.plain_pages => place.find_texts(&bytes, search, &mut found.values)?,
            _ => return Ok(None),
        }
        first_value += values;
        found.pages.push(page);
    }
    Ok(Some(found))
}

impl Found {
    /// The rows that values at some positions belong to. A row counts its first value as the row's begin, so the pages of a map's
    /// keys tell it for its values too.
    pub(super) fn rows_of(&self, values: &Positions) -> Result<Positions, ParquetError> {
        let mut rows = Positions::default();
        for page in &self.pages {
            let mut wanted = values.within(page.first_value, page.first_value + page.values).peekable();
            if wanted.peek().is_none() {
                continue;
            }
            match &page.repetition {
                Some(repetition) if page.values == page.levels => {
                    let mut repeated = Ones::new(repetition, page.levels);
                    for value in wanted {
                        let level = value - page.first_value;
                        let begun = level + 1 - repeated.until(level + 1)?;
                        rows.insert((page.rows_before + begun).checked_sub(1).ok_or_else(no_begin)?);
                    }
                }
                _ => page.rows_level_by_level(wanted, &mut rows)?,
            }
        }
        Ok(rows)
    }
}

impl PageLevels {
    /// The rows of values, where some levels have none.
    fn rows_level_by_level(
        &self,
        mut wanted: std::iter::Peekable<impl Iterator<Item = usize>>,
        rows: &mut Positions,
    ) -> Result<(), ParquetError> {
        let (mut value, mut row) = (self.first_value, self.rows_before);
        let mut levels = Levels::new(self);
        while let Some((begins, is_there)) = levels.next()? {
            row += usize::from(begins);
            if !is_there {
                continue;
            }
            if wanted.next_if_eq(&value).is_some() {
                rows.insert(row.checked_sub(1).ok_or_else(no_begin)?);
            }
            if wanted.peek().is_none() {
                break;
            }
            value += 1;
        }
        Ok(())
    }
}

fn no_begin() -> ParquetError {
    damaged("its first row has no begin")
}

/// Counts ones in runs of one bit, from the beginning to positions that ascend.
struct Ones<'a> {
    runs: Runs<'a>,
    run: Option<Run<'a>>,
    /// Where the run begins, and the ones before it.
    first: usize,
    before: usize,
}

impl<'a> Ones<'a> {
    fn new(bytes: &'a [u8], count: usize) -> Ones<'a> {
        Ones {
            runs: Runs::new(bytes, 1, count),
            run: None,
            first: 0,
            before: 0,
        }
    }

    /// Ones before `end`.
    fn until(&mut self, end: usize) -> Result<usize, ParquetError> {
        loop {
            if let Some(run) = &self.run {
                if end <= self.first + run.count {
                    return Ok(self.before + run.ones(end - self.first));
                }
                self.before += run.ones(run.count);
                self.first += run.count;
            }
            self.run = Some(self.runs.next()?.ok_or_else(|| damaged("levels end early"))?);
        }
    }
}

/// The repetition and definition of a page's levels, one after the other.
struct Levels<'a> {
    left: usize,
    repetition: Option<Bits<'a>>,
    definition: Option<Bits<'a>>,
}

impl<'a> Levels<'a> {
    fn new(page: &'a PageLevels) -> Levels<'a> {
        let bits = |bytes: &'a Option<Bytes>| bytes.as_ref().map(|bytes| Bits::new(bytes, page.levels));
        Levels {
            left: page.levels,
            repetition: bits(&page.repetition),
            definition: bits(&page.definition),
        }
    }

    /// Whether the next level begins a row, and whether it has a value.
    fn next(&mut self) -> Result<Option<(bool, bool)>, ParquetError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let repeats = self.repetition.as_mut().map_or(Ok(false), Bits::next)?;
        let is_there = self.definition.as_mut().map_or(Ok(true), Bits::next)?;
        Ok(Some((!repeats, is_there)))
    }
}

/// Runs of one bit.
struct Bits<'a> {
    runs: Runs<'a>,
    run: Option<Run<'a>>,
    at: usize,
}

impl<'a> Bits<'a> {
    fn new(bytes: &'a [u8], count: usize) -> Bits<'a> {
        Bits {
            runs: Runs::new(bytes, 1, count),
            run: None,
            at: 0,
        }
    }

    fn next(&mut self) -> Result<bool, ParquetError> {
        while self.run.as_ref().is_none_or(|run| self.at == run.count) {
            self.run = Some(self.runs.next()?.ok_or_else(|| damaged("levels end early"))?);
            self.at = 0;
        }
        let run = self.run.as_ref().expect("it was set above");
        self.at += 1;
        Ok(run.code(self.at - 1) == 1)
    }
}

/// Where the values of a page are among those of the column.
#[derive(Clone, Copy)]
struct Place {
    first_value: usize,
    values: usize,
}

impl Place {
    /// Codes whose word passes.
    fn find_codes(self, bytes: &[u8], passing: &[bool], among: Option<&Positions>, found: &mut Positions) -> Result<(), ParquetError> {
        let (Some((width, codes)), true) = (bytes.split_first(), passing.iter().any(|passes| *passes)) else {
            return Ok(());
        };
        if *width > 32 {
            return Err(damaged("codes are wider than 32 bits"));
        }
        let passes = |code: u32| passing.get(code as usize).copied().unwrap_or(false);
        let mut runs = Runs::new(codes, u32::from(*width), self.values);
        let mut first = self.first_value;
        while let Some(run) = runs.next()? {
            match (&run.codes, among) {
                (Codes::Same(code), _) if !passes(*code) => {}
                (Codes::Same(_), None) => found.insert_range(first, first + run.count),
                (Codes::Same(_), Some(among)) => among.within(first, first + run.count).for_each(|at| found.insert(at)),
                (Codes::Packed(_), None) => run.find(passing, |at| found.insert(first + at)),
                (Codes::Packed(_), Some(among)) => among
                    .within(first, first + run.count)
                    .filter(|at| passes(run.code(at - first)))
                    .for_each(|at| found.insert(at)),
            }
            first += run.count;
        }
        match first == self.first_value + self.values {
            true => Ok(()),
            false => Err(damaged("codes end early")),
        }
    }

    /// Texts that pass, each with its length before it.
    fn find_texts(self, bytes: &[u8], search: &mut Search<'_>, found: &mut Positions) -> Result<(), ParquetError> {
        let mut texts = Texts(bytes);
        for at in self.first_value..self.first_value + self.values {
            let text = texts.next()?;
            if search.among.is_none_or(|among| among.contains(at)) && (search.test)(utf8(text)?) {
                found.insert(at);
            }
        }
        Ok(())
    }
}

fn test_words(bytes: &[u8], count: usize, test: &mut dyn FnMut(&str) -> bool) -> Result<Vec<bool>, ParquetError> {
    let mut texts = Texts(bytes);
    (0..count).map(|_| Ok(test(utf8(texts.next()?)?))).collect()
}

/// Byte strings, each behind its length in four bytes.
struct Texts<'a>(&'a [u8]);

impl<'a> Texts<'a> {
    fn next(&mut self) -> Result<&'a [u8], ParquetError> {
        let (length, rest) = self.0.split_first_chunk().ok_or_else(|| damaged("text ends early"))?;
        let (text, rest) = rest
            .split_at_checked(u32::from_le_bytes(*length) as usize)
            .ok_or_else(|| damaged("text ends early"))?;
        self.0 = rest;
        Ok(text)
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, ParquetError> {
    std::str::from_utf8(bytes).map_err(|_| damaged("text is not UTF-8"))
}

/// Levels behind their length in four bytes.
fn take_levels(bytes: &mut Bytes) -> Result<Bytes, ParquetError> {
    if bytes.remaining() < 4 {
        return Err(damaged("levels end early"));
    }
    let length = bytes.get_u32_le() as usize;
    match length <= bytes.len() {
        true => Ok(bytes.split_to(length)),
        false => Err(damaged("levels end early")),
    }
}

fn count_ones(levels: &[u8], count: usize) -> Result<usize, ParquetError> {
    Ones::new(levels, count).until(count)
}

/// Runs of codes: RLE and bit-packing hybrid.
struct Runs<'a> {
    bytes: &'a [u8],
    width: u32,
    left: usize,
}

struct Run<'a> {
    codes: Codes<'a>,
    width: u32,
    count: usize,
}

enum Codes<'a> {
    Same(u32),
    Packed(&'a [u8]),
}

impl<'a> Runs<'a> {
    fn new(bytes: &'a [u8], width: u32, count: usize) -> Runs<'a> {
        Runs { bytes, width, left: count }
    }

    fn next(&mut self) -> Result<Option<Run<'a>>, ParquetError> {
        if self.left == 0 {
            return Ok(None);
        }
        let header = self.header()?;
        let is_packed = header & 1 == 1;
        let length = usize::try_from(header >> 1).map_err(|_| damaged("a run is too long"))?;
        let (count, codes) = match is_packed {
            true => {
                let count = length.saturating_mul(8).min(self.left);
                // The last run may lack the bytes that only fill it up to a whole group.
                let needed = (count * self.width as usize).div_ceil(8);
                let whole = length.saturating_mul(self.width as usize).min(self.bytes.len());
                if needed > whole {
                    return Err(damaged("codes end early"));
                }
                let (packed, rest) = self.bytes.split_at(whole);
                self.bytes = rest;
                (count, Codes::Packed(packed))
            }
            false => {
                let (value, rest) = self
                    .bytes
                    .split_at_checked(self.width.div_ceil(8) as usize)
                    .ok_or_else(|| damaged("codes end early"))?;
                self.bytes = rest;
                let mut code = [0; 4];
                code[..value.len()].copy_from_slice(value);
                let code = u64::from(u32::from_le_bytes(code)) & ((1 << self.width) - 1);
                (length.min(self.left), Codes::Same(code as u32))
            }
        };
        if count == 0 {
            return Err(damaged("a run is empty"));
        }
        self.left -= count;
        Ok(Some(Run {
            codes,
            width: self.width,
            count,
        }))
    }

    fn header(&mut self) -> Result<u64, ParquetError> {
        let mut header = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first().ok_or_else(|| damaged("codes end early"))?;
            self.bytes = rest;
            header |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(header);
            }
        }
        Err(damaged("the header of a run has no end"))
    }
}

impl Run<'_> {
    fn code(&self, at: usize) -> u32 {
        match self.codes {
            Codes::Same(code) => code,
            Codes::Packed(bytes) => {
                let bit = at * self.width as usize;
                let window = word_at(bytes, bit / 8) >> (bit % 8);
                (window & ((1 << self.width) - 1)) as u32
            }
        }
    }

    /// Ones among the first `count` codes of one bit.
    fn ones(&self, count: usize) -> usize {
        match self.codes {
            Codes::Same(code) => count * code as usize,
            Codes::Packed(bytes) => {
                let (words, rest) = bytes[..count / 8].as_chunks::<8>();
                let whole: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
                let rest: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
                let last = bytes.get(count / 8).map_or(0, |byte| byte & ((1 << (count % 8)) - 1));
                (whole + rest + last.count_ones()) as usize
            }
        }
    }

    /// Positions of codes that pass: eight at a time where they fit one word.
    fn find(&self, passing: &[bool], mut visit: impl FnMut(usize)) {
        let Codes::Packed(bytes) = self.codes else {
            return;
        };
        let width = self.width as usize;
        let whole = if width <= 8 { self.count / 8 } else { 0 };
        let mask = (1_u64 << self.width) - 1;
        let mut table = [false; 256];
        let known = passing.len().min(256);
        table[..known].copy_from_slice(&passing[..known]);
        for group in 0..whole {
            let word = word_at(bytes, group * width);
            let passes = |at: usize| table[(word >> (at * width) & mask) as usize & 0xff];
            let mut found = (0..8).fold(0_u8, |found, at| found | u8::from(passes(at)) << at);
            while found != 0 {
                visit(group * 8 + found.trailing_zeros() as usize);
                found &= found - 1;
            }
        }
        for at in whole * 8..self.count {
            if passing.get(self.code(at) as usize) == Some(&true) {
                visit(at);
            }
        }
    }
}

/// Eight bytes from a position on, little-endian; what is not there is 0.
fn word_at(bytes: &[u8], at: usize) -> u64 {
    if let Some(Some(word)) = bytes.get(at..).map(|rest| rest.first_chunk()) {
        return u64::from_le_bytes(*word);
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

impl Positions {
    pub(crate) fn insert(&mut self, at: usize) {
        let word = at / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (at % 64);
    }

    fn insert_range(&mut self, start: usize, end: usize) {
        (start..end).for_each(|at| self.insert(at));
    }

    pub(crate) fn contains(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// As rows of a row group of `rows`.
    pub(crate) fn selection(&self, rows: usize) -> RowSelection {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for row in self.within(0, rows) {
            match ranges.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => ranges.push(row..row + 1),
            }
        }
        RowSelection::from_consecutive_ranges(ranges.into_iter(), rows)
    }

    /// In both.
    pub(crate) fn and(mut self, other: &Positions) -> Positions {
        self.words.truncate(other.words.len());
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
        self
    }

    /// In one of both.
    pub(crate) fn or(mut self, other: &Positions) -> Positions {
        self.words.resize(self.words.len().max(other.words.len()), 0);
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
        self
    }

    /// Those from `start` until before `end`, ascending.
    pub(crate) fn within(&self, start: usize, end: usize) -> impl Iterator<Item = usize> {
        let words = self.words.iter().copied().enumerate();
        let last = end.div_ceil(64).min(self.words.len());
        words
            .skip(start / 64)
            .take(last.saturating_sub(start / 64))
            .flat_map(|(at, word)| ones(word).map(move |bit| at * 64 + bit))
            .skip_while(move |at| *at < start)
            .take_while(move |at| *at < end)
    }
}

fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit as usize)
    })
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!("a page is damaged: {what}"))
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.rest(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let rest = self.rest(start)?;
        match length <= rest.len() {
            true => Ok(rest.slice(..length)),
            false => Err(damaged("it ends after its column")),
        }
    }
}

impl Chunk {
    fn rest(&self, start: u64) -> Result<Bytes, ParquetError> {
        let skipped = start.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        let skipped = skipped.filter(|skipped| *skipped <= self.bytes.len());
        Ok(self.bytes.slice(skipped.ok_or_else(|| damaged("it lies outside of its column"))?..))
    }
}

#[cfg(test)]
mod tests;
