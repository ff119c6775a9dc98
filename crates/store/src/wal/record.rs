//! One append as bytes.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::reader::read_record_batch;
use arrow::ipc::root_as_message;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use spanflame_model::{Fingerprint, Tenant, Timestamp};

use super::segment::Tables;
use crate::Error;

/// What one append made durable.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// When it arrived.
    pub(crate) received: Timestamp,
    /// Whose it is.
    pub(crate) tenant: Tenant,
    /// Identities of its spans, one for each row of `spans` and in their order, then of its profiles.
    pub(crate) fingerprints: Vec<Fingerprint>,
    /// Its rows: index into the segment's tables, and a batch of that table's schema.
    pub(crate) batches: Vec<(usize, RecordBatch)>,
}

impl Record {
    /// The body of the record.
    pub(super) fn encode_body(&self) -> Result<Vec<u8>, Error> {
        let mut body = Vec::with_capacity(256 + 16 * self.fingerprints.len());
        body.extend_from_slice(&self.received.unix_nanos().to_le_bytes());
        let tenant = self.tenant.as_str().as_bytes();
        body.extend_from_slice(&(tenant.len() as u16).to_le_bytes());
        body.extend_from_slice(tenant);
        body.extend_from_slice(&(self.fingerprints.len() as u32).to_le_bytes());
        for fingerprint in &self.fingerprints {
            body.extend_from_slice(&fingerprint.0.to_le_bytes());
        }
        body.extend_from_slice(&(self.batches.len() as u16).to_le_bytes());
        let options = IpcWriteOptions::default();
        for (table, batch) in &self.batches {
            let (_, encoded) = IpcDataGenerator::default()
                .encode(batch, &mut DictionaryTracker::new(true), &options, &mut Default::default())
                .map_err(Error::arrow("encode rows for the write-ahead log"))?;
            body.extend_from_slice(&(*table as u16).to_le_bytes());
            body.extend_from_slice(&(encoded.ipc_message.len() as u32).to_le_bytes());
            body.extend_from_slice(&(encoded.arrow_data.len() as u64).to_le_bytes());
            body.extend_from_slice(&encoded.ipc_message);
            body.extend_from_slice(&encoded.arrow_data);
        }
        Ok(body)
    }

    /// Reads a body whose checksum was right. `Err` says what is wrong with it.
    pub(super) fn decode_body(body: &[u8], tables: &Tables) -> Result<Record, String> {
        let mut cursor = Cursor(body);
        let received = Timestamp::from_unix_nanos(cursor.u64()?).ok_or("arrival time is negative")?;
        let tenant_len = cursor.u16()?.into();
        let tenant = std::str::from_utf8(cursor.take(tenant_len)?).map_err(|e| e.to_string())?;
        let tenant = tenant.parse::<Tenant>().map_err(|e| e.to_string())?;
        let count = cursor.u32()? as usize;
        let bytes = cursor.take(count.checked_mul(16).ok_or("too many fingerprints")?)?;
        let fingerprints = bytes
            .chunks_exact(16)
            .map(|chunk| Fingerprint(u128::from_le_bytes(chunk.try_into().expect("chunks have 16 bytes"))))
            .collect();
        let count = cursor.u16()?;
        let mut batches = Vec::with_capacity(usize::from(count).min(tables.len()));
        for _ in 0..count {
            batches.push(decode_batch(&mut cursor, tables)?);
        }
        Ok(Record {
            received,
            tenant,
            fingerprints,
            batches,
        })
    }
}

fn decode_batch(cursor: &mut Cursor<'_>, tables: &Tables) -> Result<(usize, RecordBatch), String> {
    let table = usize::from(cursor.u16()?);
    let meta_len = cursor.u32()? as usize;
    let data_len = usize::try_from(cursor.u64()?).map_err(|e| e.to_string())?;
    let message = root_as_message(cursor.take(meta_len)?).map_err(|e| e.to_string())?;
    let rows = message.header_as_record_batch().ok_or("message holds no rows")?;
    let data = Buffer::from(cursor.take(data_len)?);
    let schema = tables.schema(table).ok_or_else(|| format!("table {table} is not in the header"))?;
    let batch = read_record_batch(&data, rows, schema, &HashMap::new(), None, &message.version()).map_err(|e| e.to_string())?;
    Ok((table, batch))
}

/// Reads from the front; every read is checked against what is left.
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (head, tail) = self
            .0
            .split_at_checked(len)
            .ok_or_else(|| format!("{} bytes are left, expected {len}", self.0.len()))?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("take returns N bytes"))
    }

    pub(super) fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }
}
