//! The cart: reads its lines from a made-up store and renders them.

use std::time::Duration;

use tracing::{Instrument, info_span};

/// One line of a cart.
struct Line {
    article: &'static [u8],
    /// A digit.
    count: u8,
}

const ARTICLES: [&[u8]; 2] = [
    b"a warm <moss> pullover of sheep's wool & linen, one sleeve longer than the other, to be washed by hand in cold water, returned twice",
    b"a pair of shoes for rain & snow, the left one in size 38 and the right one in size 39, with laces for either, the box is missing",
];

/// What a line needs beside its article: the separator, the count, the end of the line.
const LINE_EXTRA_BYTES: usize = 5;

/// What the made-up store takes to answer.
const STORE_WAIT: Duration = Duration::from_millis(150);

/// The cart as text.
pub async fn cart(line_count: u32) -> String {
    let lines = read_lines(line_count).instrument(info_span!("read lines")).await;
    render(&lines).instrument(info_span!("render cart", cart.lines = line_count)).await
}

async fn read_lines(line_count: u32) -> Vec<Line> {
    tokio::time::sleep(STORE_WAIT).await;
    (0..line_count as usize)
        .map(|n| Line {
            article: ARTICLES[n % 2],
            count: 1 + (n % 4) as u8,
        })
        .collect()
}

/// Renders line by line and lets other requests run in between, as code does that awaits for each line.
async fn render(lines: &[Line]) -> String {
    // Room for every letter to be escaped.
    let mut page = vec![0; lines.iter().map(|line| 2 * line.article.len() + LINE_EXTRA_BYTES).sum()];
    let mut written = 0;
    for end in 1..=lines.len() {
        written = serialize_lines_again(&mut page, &lines[..end]);
        tokio::task::yield_now().await;
    }
    page.truncate(written);
    // Articles and separators are ASCII.
    String::from_utf8(page).unwrap_or_default()
}

/// The planted loop: called for every line with all lines before it, so its work grows with the square of the cart.
///
/// Returns how much of the page is written. Indices instead of iterators: what runs here is counted here, not in inlined frames
/// of the standard library.
#[inline(never)]
fn serialize_lines_again(page: &mut [u8], lines: &[Line]) -> usize {
    let (mut written, mut number) = (0, 0);
    while number < lines.len() {
        let article = lines[number].article;
        let mut at = 0;
        while at < article.len() {
            let letter = article[at];
            if letter == b'<' || letter == b'>' || letter == b'&' {
                page[written] = b'\\';
                written += 1;
            }
            page[written] = letter;
            written += 1;
            at += 1;
        }
        page[written] = b' ';
        page[written + 1] = b'x';
        page[written + 2] = b' ';
        page[written + 3] = b'0' + lines[number].count;
        page[written + 4] = b'\n';
        written += LINE_EXTRA_BYTES;
        number += 1;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cart_renders_each_of_its_lines_once() {
        let page = cart(2).await;
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].starts_with("a warm \\<moss\\> pullover") && lines[0].ends_with("returned twice x 1"),
            "{page}"
        );
        assert!(
            lines[1].starts_with("a pair of shoes for rain \\& snow") && lines[1].ends_with("missing x 2"),
            "{page}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_cart_is_an_empty_page() {
        assert_eq!(cart(0).await, "");
    }
}
