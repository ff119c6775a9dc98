//! Who may send how much: tenants, the rate of each, and the bytes in flight.
//!
//! Two limits protect the memory and one the neighbours. A request holds [`Load`] for every byte of it that
//! is in memory, compressed and decompressed; when all of `in_flight_bytes_max` is held, the next byte is
//! refused as busy. Rates are counted in decompressed bytes, which is what decoding costs, by a bucket per
//! tenant that may go into debt: a request larger than the rate is taken when the bucket is not empty, and
//! the tenant then waits for the debt to be paid.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use parking_lot::Mutex;
use spanflame_model::Tenant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::{Failure, FailureKind};

/// The header that names the tenant.
pub(crate) const TENANT_HEADER: &str = "x-scope-orgid";

/// Most tenants that one read may name.
const TENANTS_PER_READ_MAX: usize = 64;

/// Most tenants whose rates are remembered; the buckets of idle ones are full and may be forgotten.
const BUCKETS_MAX: usize = 10_000;

/// In-flight bytes are counted in pieces of this size, so that the semaphore's 32-bit counts reach far enough.
const PIECE_BYTES: u64 = 1024;

/// The tenant a request writes to.
pub(crate) fn write_tenant(headers: &HeaderMap) -> Result<Tenant, Failure> {
    let tenant = match tenant_text(headers)? {
        None => Tenant::anonymous(),
        Some(text) => parse_tenant(text)?,
    };
    if tenant == Tenant::own() {
        let message = format!("tenant {tenant} is reserved for the server's own telemetry and cannot be written");
        return Err(Failure {
            field: Some(TENANT_HEADER.to_owned()),
            ..Failure::new(FailureKind::Forbidden, message)
        });
    }
    Ok(tenant)
}

/// The tenants a request reads from, each once, sorted; never empty.
pub(crate) fn read_tenants(headers: &HeaderMap) -> Result<Vec<Tenant>, Failure> {
    let Some(text) = tenant_text(headers)? else {
        return Ok(vec![Tenant::anonymous()]);
    };
    let mut tenants = text.split('|').map(parse_tenant).collect::<Result<Vec<Tenant>, Failure>>()?;
    tenants.sort();
    tenants.dedup();
    if tenants.len() > TENANTS_PER_READ_MAX {
        let message = format!("{} tenants are named, expected at most {TENANTS_PER_READ_MAX}", tenants.len());
        return Err(Failure::invalid(TENANT_HEADER, message));
    }
    Ok(tenants)
}

fn tenant_text(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let Some(value) = headers.get(TENANT_HEADER) else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| Failure::invalid(TENANT_HEADER, "tenant is not ASCII, expected letters, digits or -_.!*'()"))?;
    Ok(Some(text.trim()).filter(|text| !text.is_empty()))
}

fn parse_tenant(text: &str) -> Result<Tenant, Failure> {
    Tenant::from_str(text).map_err(|error| Failure::invalid(TENANT_HEADER, error.to_string()))
}

/// The limits that all requests share.
pub(crate) struct Admission {
    pieces: Arc<Semaphore>,
    in_flight_bytes_max: u64,
    rate_bytes_per_second: Option<u64>,
    buckets: Mutex<HashMap<Tenant, Bucket>>,
}

/// What a tenant may still send; negative while it is in debt.
struct Bucket {
    bytes: f64,
    filled: Instant,
}

impl Admission {
    pub(crate) fn new(in_flight_bytes_max: u64, rate_bytes_per_second: Option<u64>) -> Admission {
        let pieces = in_flight_bytes_max.div_ceil(PIECE_BYTES).min(u64::from(u32::MAX)) as usize;
        Admission {
            pieces: Arc::new(Semaphore::new(pieces)),
            in_flight_bytes_max,
            rate_bytes_per_second,
            buckets: Mutex::default(),
        }
    }

    /// A request that holds nothing yet.
    pub(crate) fn load(self: &Arc<Admission>) -> Load {
        Load {
            admission: self.clone(),
            permit: None,
            bytes: 0,
        }
    }

    /// Counts `bytes` of `tenant` at `now`; fails with the time after which the next request will be taken.
    pub(crate) fn charge(&self, tenant: &Tenant, bytes: u64, now: Instant) -> Result<(), Failure> {
        let Some(rate) = self.rate_bytes_per_second else {
            return Ok(());
        };
        let rate = rate.max(1) as f64;
        let mut buckets = self.buckets.lock();
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(tenant) {
            buckets.retain(|_, bucket| bucket.level(rate, now) < rate);
        }
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(tenant) {
            return Err(Failure::busy("too many tenants send at once", Duration::from_secs(1)));
        }
        let bucket = buckets.entry(tenant.clone()).or_insert(Bucket { bytes: rate, filled: now });
        bucket.bytes = bucket.level(rate, now);
        bucket.filled = now;
        if bucket.bytes < 0.0 {
            let wait = Duration::from_secs_f64((-bucket.bytes / rate).min(3600.0));
            let message = format!("tenant {tenant} sends more than {rate} bytes a second, the limit of rate_bytes_per_second");
            return Err(Failure::busy(message, wait));
        }
        bucket.bytes -= bytes as f64;
        Ok(())
    }
}

impl Bucket {
    fn level(&self, rate: f64, now: Instant) -> f64 {
        (self.bytes + now.duration_since(self.filled).as_secs_f64() * rate).min(rate)
    }
}

/// The bytes that one request holds in memory; given back when dropped.
pub(crate) struct Load {
    admission: Arc<Admission>,
    permit: Option<OwnedSemaphorePermit>,
    bytes: u64,
}

impl Load {
    /// Makes sure that `bytes` in all are held. Never waits: what does not fit is refused.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> Result<(), Failure> {
        let missing = bytes.div_ceil(PIECE_BYTES).saturating_sub(self.bytes.div_ceil(PIECE_BYTES));
        if missing > 0 {
            let refused = || {
                let max = self.admission.in_flight_bytes_max;
                Failure::new(
                    FailureKind::Busy,
                    format!("requests of {max} bytes are being taken in, the limit of in_flight_bytes_max"),
                )
            };
            let pieces = u32::try_from(missing).map_err(|_| refused())?;
            let more = self
                .admission
                .pieces
                .clone()
                .try_acquire_many_owned(pieces)
                .map_err(|_| refused())?;
            match &mut self.permit {
                Some(permit) => permit.merge(more),
                none => *none = Some(more),
            }
        }
        self.bytes = self.bytes.max(bytes);
        Ok(())
    }

    /// Holds `bytes` more.
    pub(crate) fn grow_by(&mut self, bytes: u64) -> Result<(), Failure> {
        self.grow_to(self.bytes.saturating_add(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(tenant: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(TENANT_HEADER, tenant.parse().expect("header"));
        headers
    }

    #[test]
    fn reads_may_name_several_tenants_and_writes_one() {
        let names: Vec<String> = read_tenants(&headers("b|a|b"))
            .expect("valid")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["a", "b"]);
        let failure = write_tenant(&headers("a|b")).expect_err("two tenants");
        assert_eq!(
            (failure.kind, failure.field.as_deref()),
            (FailureKind::Invalid, Some(TENANT_HEADER))
        );
        assert_eq!(write_tenant(&HeaderMap::new()).expect("default"), Tenant::anonymous());
    }

    #[test]
    fn the_reserved_tenant_can_be_read_but_not_written() {
        assert_eq!(read_tenants(&headers("spanflame")).expect("readable"), [Tenant::own()]);
        assert_eq!(
            write_tenant(&headers("spanflame")).expect_err("reserved").kind,
            FailureKind::Forbidden
        );
    }

    #[test]
    fn a_tenant_in_debt_waits_and_others_do_not() {
        let admission = Admission::new(1 << 20, Some(1000));
        let (a, b) = ("a".parse().expect("valid"), "b".parse().expect("valid"));
        let start = Instant::now();
        admission.charge(&a, 3000, start).expect("the bucket is full");
        let failure = admission.charge(&a, 1, start).expect_err("in debt");
        assert_eq!(
            (failure.kind, failure.retry_after),
            (FailureKind::Busy, Some(Duration::from_secs(2)))
        );
        admission.charge(&b, 1, start).expect("another tenant");
        admission.charge(&a, 1, start + Duration::from_secs(2)).expect("paid");
    }

    #[test]
    fn bytes_in_flight_are_given_back() {
        let admission = Arc::new(Admission::new(4096, None));
        let mut first = admission.load();
        first.grow_by(1000).expect("fits");
        first.grow_by(3000).expect("fits");
        let mut second = admission.load();
        assert_eq!(second.grow_by(1024).expect_err("full").kind, FailureKind::Busy);
        drop(first);
        second.grow_by(4096).expect("given back");
    }
}
