//! What the two commands answer, as JSON.

use serde::Serialize;

/// A place in a kernel.rs with what is wrong there and what to write instead.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// The source text concerned.
    pub construct: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub advice: String,
}

/// Version of the cutile crates that this program was built with.
pub fn cutile_version() -> String {
    let lock = include_str!("../Cargo.lock");
    let package = lock
        .split("[[package]]")
        .find(|part| part.contains("name = \"cutile-compiler\""))
        .unwrap_or_default();
    package
        .lines()
        .find_map(|line| line.strip_prefix("version = \""))
        .map(|rest| rest.trim_end_matches('"').to_string())
        .unwrap_or_default()
}
