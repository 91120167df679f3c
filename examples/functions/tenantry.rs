//! The host calls for functions in Rust: copy this file next to your own (docs/functions.md, "Host calls").
//! An error is the host's error, as `{"code":…,"message":…}`.
#![allow(dead_code)]

mod host {
    #[link(wasm_import_module = "tenantry")]
    extern "C" {
        pub fn log(level: i32, text: *const u8, length: usize);
        pub fn env(name: *const u8, length: usize) -> i32;
        pub fn db_query(sql: *const u8, length: usize, parameters: *const u8, parameters_length: usize) -> i32;
        pub fn storage_get(path: *const u8, length: usize) -> i32;
        pub fn storage_put(path: *const u8, length: usize, kind: *const u8, kind_length: usize, bytes: *const u8, bytes_length: usize) -> i32;
        pub fn storage_delete(path: *const u8, length: usize) -> i32;
        pub fn http_fetch(request: *const u8, length: usize, body: *const u8, body_length: usize) -> i32;
        pub fn take(at: *mut u8, size: usize) -> i32;
    }
}

pub type HostResponse = Result<Vec<u8>, String>;

#[derive(Clone, Copy)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

fn taken(result: i32) -> HostResponse {
    let length = if result < 0 { -(result + 1) } else { result } as usize;
    let mut bytes = vec![0; length];
    unsafe { host::take(bytes.as_mut_ptr(), length) };
    if result < 0 {
        Err(text(bytes))
    } else {
        Ok(bytes)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn log(level: Level, line: &str) {
    let line = format!("{line}\n");
    unsafe { host::log(level as i32, line.as_ptr(), line.len()) }
}

/// Returns a variable of the function's configuration.
pub fn env(name: &str) -> Option<String> {
    taken(unsafe { host::env(name.as_ptr(), name.len()) }).ok().map(text)
}

/// Runs an SQL statement. `parameters`: a JSON array for $1, $2 …, or an empty text. Returns `{"rows":[…],"count":n}`.
pub fn query(sql: &str, parameters: &str) -> Result<String, String> {
    taken(unsafe { host::db_query(sql.as_ptr(), sql.len(), parameters.as_ptr(), parameters.len()) }).map(text)
}

/// Reads a file. `path`: `bucket/path/in/it`.
pub fn get(path: &str) -> HostResponse {
    taken(unsafe { host::storage_get(path.as_ptr(), path.len()) })
}

/// Writes a file and returns the object as JSON: its `id`, `bucket`, `path`, `size` …
pub fn put(path: &str, content_type: &str, bytes: &[u8]) -> Result<String, String> {
    taken(unsafe { host::storage_put(path.as_ptr(), path.len(), content_type.as_ptr(), content_type.len(), bytes.as_ptr(), bytes.len()) }).map(text)
}

pub fn delete(path: &str) -> Result<(), String> {
    taken(unsafe { host::storage_delete(path.as_ptr(), path.len()) }).map(|_| ())
}

/// Sends an HTTP request. `request`: `{"method":…,"url":…,"headers":{…}}`. Returns `{"status":…,"headers":{…}}`, and the body.
pub fn fetch(request: &str, body: &[u8]) -> Result<(String, Vec<u8>), String> {
    let mut head = taken(unsafe { host::http_fetch(request.as_ptr(), request.len(), body.as_ptr(), body.len()) })?;
    let end = head.iter().position(|byte| *byte == b'\n').unwrap_or(head.len());
    let body = head.split_off((end + 1).min(head.len()));
    head.truncate(end);
    Ok((text(head), body))
}
