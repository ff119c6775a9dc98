//! A small shop whose slowness is known: three services, and the load that drives them.
//!
//! ```text
//! load -> frontend  GET /checkout -+-> cart     GET /cart    renders the cart's lines
//!                                  +-> pricing  GET /price   matches the coupon
//! ```
//!
//! Three causes are planted, and `cargo xtask demo --check` demands that each is named for the right spans and for no other:
//!
//! | cause | where | hot |
//! |---|---|---|
//! | `cart::serialize_lines_again` serializes all earlier lines again for every line | cart | for large carts only |
//! | `pattern::match_from`, a backtracking matcher | pricing | for odd coupons only |
//! | `session::stretch_key` stretches the session's key | every service | a little in every request |
//!
//! So the aggregate profile points to the session, and only the profile of a slow span points to what made it slow. The services
//! run on two worker threads each with several requests in flight, and the slow cart yields between its lines: a thread that
//! serves the slow request also serves others meanwhile, so time alone cannot tell whose samples are whose.
//!
//! Real in: processes, HTTP, W3C trace context, tokio. Made up: what the services compute; their stores are sleeps.

#![expect(missing_docs, reason = "the binaries of this package are its only users")]

pub mod cart;
pub mod flags;
pub mod pattern;
pub mod pricing;
pub mod service;
pub mod session;
pub mod trace_context;
