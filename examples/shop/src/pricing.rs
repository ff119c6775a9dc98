//! The price of a cart: takes the coupon apart and asks a made-up price list.

use std::time::Duration;

use tracing::{Instrument, info_span};

use crate::pattern;

/// What coupons of the spring sale look like: letters in three groups and a closing digit.
const SPRING_COUPON: &str = "S*P*R*I*S*S*S*S*7";

/// The coupon's discount in percent.
pub async fn price(coupon: &str) -> u32 {
    let discount = {
        let span = info_span!("match coupon", coupon.length = coupon.len());
        async { match_coupon(coupon) }.instrument(span).await
    };
    tokio::time::sleep(PRICE_LIST_WAIT).instrument(info_span!("read price list")).await;
    discount
}

/// What the made-up price list takes to answer.
const PRICE_LIST_WAIT: Duration = Duration::from_millis(150);

#[inline(never)]
fn match_coupon(coupon: &str) -> u32 {
    if pattern::matches(SPRING_COUPON, coupon) { 15 } else { 0 }
}

/// A coupon that no pattern matches at once: a long run of one letter without its closing digit.
pub fn odd_coupon() -> String {
    "S".repeat(ODD_COUPON_LENGTH)
}

/// The matcher's work grows with the fifth power of it; this takes about 500 ms on a small cloud machine.
const ODD_COUPON_LENGTH: usize = 118;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spring_coupon_has_a_discount_and_a_made_up_one_has_none() {
        assert_eq!(match_coupon("SPRI7"), 15);
        assert_eq!(match_coupon("WINTER"), 0);
    }
}
