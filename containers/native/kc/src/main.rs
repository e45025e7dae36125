//! `tilefarm-kc`: compiles and checks kernel.rs texts without rustc and without a GPU.
//!
//! ```text
//! tilefarm-kc compile REQUEST.json   JSON on stdout; exit 0 when every entry compiled, else 1
//! tilefarm-kc check FILE.rs          JSON on stdout; exit 0 when nothing was found, else 1
//! ```
//! Exit 2: the command line or the request itself cannot be read.

mod check;
mod compile;
mod entry_rule;
mod names;
mod report;

use std::process::ExitCode;

use cutile as _;

/// The kernel compiler recurses once per nested expression.
const STACK_BYTES: usize = 256 << 20;

const USAGE: &str = "usage: tilefarm-kc compile REQUEST.json | tilefarm-kc check FILE.rs";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let worker = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || run(&arguments));
    match worker.map(|handle| handle.join()) {
        Ok(Ok(Ok(clean))) => ExitCode::from(u8::from(!clean)),
        Ok(Ok(Err(message))) => {
            eprintln!("tilefarm-kc: {message}");
            ExitCode::from(2)
        }
        _ => {
            eprintln!("tilefarm-kc: the worker thread ended early");
            ExitCode::from(2)
        }
    }
}

/// Runs one command and prints its answer; true when there was nothing to complain about.
fn run(arguments: &[String]) -> Result<bool, String> {
    let [command, path] = arguments else {
        return Err(USAGE.to_string());
    };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    match command.as_str() {
        "compile" => {
            let answer = compile::compile(&text).map_err(|message| format!("{path}: {message}"))?;
            print(&answer);
            Ok(answer.results.iter().all(|result| result.error.is_none()))
        }
        "check" => {
            let answer = check::check(path, &text);
            print(&answer);
            Ok(answer.findings.is_empty())
        }
        _ => Err(USAGE.to_string()),
    }
}

fn print<T: serde::Serialize>(answer: &T) {
    println!("{}", serde_json::to_string_pretty(answer).expect("plain data becomes JSON"));
}
