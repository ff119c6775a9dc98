//! The cart: reads its lines from a made-up store and renders them.

use std::fmt::Write;
use std::time::Duration;

use tracing::{Instrument, info_span};

/// One line of a cart.
pub struct Line {
    pub article: String,
    pub count: u32,
    pub cents: u64,
}

/// What the made-up store takes to answer.
const STORE_WAIT: Duration = Duration::from_millis(150);

/// The cart as text.
pub async fn cart(line_count: u32) -> String {
    let lines = read_lines(line_count).instrument(info_span!("read lines")).await;
    render(&lines).instrument(info_span!("render cart", cart.lines = line_count)).await
}

async fn read_lines(line_count: u32) -> Vec<Line> {
    tokio::time::sleep(STORE_WAIT).await;
    (0..line_count)
        .map(|n| Line {
            article: article(n),
            count: 1 + n % 4,
            cents: 199 + u64::from(n) * 31,
        })
        .collect()
}

fn article(number: u32) -> String {
    format!("\"No. {number}\", a warm pullover of sheep's wool & linen, in <moss> green")
}

/// Renders line by line and lets other requests run in between, as code does that awaits for each line.
async fn render(lines: &[Line]) -> String {
    let mut page = String::new();
    for end in 1..=lines.len() {
        page.clear();
        serialize_lines_again(&mut page, &lines[..end]);
        tokio::task::yield_now().await;
    }
    page
}

/// The planted loop: called for every line with all lines before it, so its work grows with the square of the cart.
#[inline(never)]
fn serialize_lines_again(page: &mut String, lines: &[Line]) {
    for line in lines {
        push_escaped(page, &line.article);
        page.push_str(" x ");
        push_number(page, u64::from(line.count));
        page.push_str(" = ");
        push_number(page, line.cents * u64::from(line.count));
        page.push('\n');
    }
}

#[inline(always)]
fn push_escaped(page: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '"' => page.push_str("&quot;"),
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            plain => page.push(plain),
        }
    }
}

#[inline(always)]
fn push_number(page: &mut String, number: u64) {
    // Writing to a string cannot fail.
    let _ = write!(page, "{number}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cart_renders_each_of_its_lines_once() {
        let page = cart(2).await;
        let ends: Vec<&str> = page.lines().map(|line| line.rsplit("green").next().unwrap_or_default()).collect();
        assert_eq!(ends, [" x 1 = 199", " x 2 = 460"]);
    }

    #[test]
    fn markup_in_an_article_is_escaped() {
        let mut page = String::new();
        push_escaped(&mut page, "<b> & \"c\"");
        assert_eq!(page, "&lt;b&gt; &amp; &quot;c&quot;");
    }
}
