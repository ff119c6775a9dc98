//! Days of arrival, by which tables are partitioned.

use std::fmt;
use std::str::FromStr;

use spanflame_model::Timestamp;

const NANOS_PER_DAY: i64 = 86_400 * 1_000_000_000;

/// A UTC day, counted from 1970-01-01. Its text is `YYYY-MM-DD`, the value of the partition column `day`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Day(pub(crate) i64);

impl Day {
    /// The day that holds an instant.
    pub(crate) fn of(at: Timestamp) -> Day {
        Day(at.unix_nanos() / NANOS_PER_DAY)
    }
}

impl fmt::Display for Day {
    /// Civil date from day number, after Howard Hinnant's `civil_from_days`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shifted = self.0 + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Day {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Day, InvalidDay> {
        let number = |range| text.get(range).and_then(|part: &str| part.parse::<i64>().ok());
        let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
            return Err(InvalidDay(text.chars().take(20).collect()));
        };
        let shifted_year = year - i64::from(month <= 2);
        let era = shifted_year.div_euclid(400);
        let year_of_era = shifted_year.rem_euclid(400);
        let shifted_month = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let parsed = Day(era * 146_097 + day_of_era - 719_468);
        // What does not print as it was written was no date: 2026-02-30, 2026/01/01.
        if parsed.to_string() == text {
            Ok(parsed)
        } else {
            Err(InvalidDay(text.chars().take(20).collect()))
        }
    }
}

/// Text that is no day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("day is {0:?}, expected YYYY-MM-DD")]
pub(crate) struct InvalidDay(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_print_and_parse_as_dates() {
        for (number, text) in [
            (0, "1970-01-01"),
            (19_782, "2024-02-29"),
            (20_787, "2026-11-30"),
            (-1, "1969-12-31"),
        ] {
            assert_eq!(Day(number).to_string(), text);
            assert_eq!(text.parse(), Ok(Day(number)));
        }
        assert!("2026-02-30".parse::<Day>().is_err());
        assert!("2026/01/01".parse::<Day>().is_err());
    }
}
