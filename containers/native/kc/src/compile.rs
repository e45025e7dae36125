//! Kernel text to Tile IR, specialised as the crate's own launcher would for the given arguments.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use cutile_compiler::ast::{Module, SpanBase};
use cutile_compiler::compile_api::KernelCompiler;
use cutile_compiler::error::JITError;
use cutile_compiler::hints::CompileOptions;
use cutile_compiler::specialization::{DivHint, SpecializationBits, compute_spec};
use serde::{Deserialize, Serialize};

use crate::report::cutile_version;

/// One call: a file and the entries wanted from it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The kernel.rs; also the name in locations.
    file: String,
    /// Its text, when it is not to be read from `file`.
    text: Option<String>,
    /// Target, e.g. `sm_90`.
    gpu: String,
    /// Folder for `ID.tileirbc`; without it no bytecode is kept.
    out: Option<PathBuf>,
    entries: Vec<Wanted>,
}

/// One entry with its generics and the arguments of a launch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    id: String,
    entry: String,
    /// In declaration order: `f16`, `1024`, `true`.
    generics: Vec<String>,
    /// By parameter name; the launcher derives divisibility and unit strides from them.
    #[serde(default)]
    args: BTreeMap<String, Arg>,
    occupancy: Option<i32>,
    num_ctas: Option<i32>,
    max_divisibility: Option<i32>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Arg {
    Tensor { address: u64, shape: Vec<i64>, strides: Vec<i64> },
    Pointer { address: u64 },
    Scalar { value: i64 },
    /// Floats and bools: the launcher does not specialise on them.
    Opaque {},
}

#[derive(Serialize)]
pub struct Answer {
    cutile: String,
    pub results: Vec<Compiled>,
}

#[derive(Serialize)]
pub struct Compiled {
    id: String,
    /// Tile IR as the crate prints it.
    ir: Option<String>,
    /// Path of the bytecode file.
    bytecode: Option<String>,
    pub error: Option<Failure>,
}

#[derive(Serialize)]
pub struct Failure {
    /// `syntax`, `compile`, or `panic` (a fault of the compiler).
    kind: &'static str,
    message: String,
    /// From 1; absent when the compiler names no place in the file.
    line: Option<usize>,
    column: Option<usize>,
}

impl Failure {
    fn new(kind: &'static str, message: String) -> Self {
        Failure { kind, message, line: None, column: None }
    }
}

/// Answers a request given as JSON text. An `Err` means that the request cannot be read.
pub fn compile(request: &str) -> Result<Answer, String> {
    let request: Request = serde_json::from_str(request).map_err(|error| error.to_string())?;
    let text = match &request.text {
        Some(text) => text.clone(),
        None => std::fs::read_to_string(&request.file)
            .map_err(|error| format!("{}: {error}", request.file))?,
    };
    let results = match parse(&text) {
        Ok(modules) => request.entries.iter().map(|w| one(&request, &modules, w)).collect(),
        Err(error) => {
            let start = error.span().start();
            let failure = || Failure {
                kind: "syntax",
                message: error.to_string(),
                line: Some(start.line),
                column: Some(start.column + 1),
            };
            let failed = |w: &Wanted| Compiled {
                id: w.id.clone(),
                ir: None,
                bytecode: None,
                error: Some(failure()),
            };
            request.entries.iter().map(failed).collect()
        }
    };
    Ok(Answer { cutile: cutile_version(), results })
}

/// The file's modules, with spans that count from the file's first line.
fn parse(text: &str) -> syn::Result<Vec<syn::ItemMod>> {
    let file = syn::parse_file(text)?;
    let modules: Vec<syn::ItemMod> = file
        .items
        .into_iter()
        .filter_map(|item| match item {
            syn::Item::Mod(module) if module.content.is_some() => Some(module),
            _ => None,
        })
        .collect();
    if modules.is_empty() {
        let message = "no `#[cutile::module] pub mod NAME { .. }` in this file";
        return Err(syn::Error::new(proc_macro2::Span::call_site(), message));
    }
    Ok(modules)
}

fn one(request: &Request, modules: &[syn::ItemMod], wanted: &Wanted) -> Compiled {
    let mut compiled =
        Compiled { id: wanted.id.clone(), ir: None, bytecode: None, error: None };
    match build(request, modules, wanted) {
        Ok((ir, bytecode)) => {
            compiled.ir = Some(ir);
            if let Some(folder) = &request.out {
                let path = folder.join(format!("{}.tileirbc", wanted.id));
                match std::fs::write(&path, bytecode) {
                    Ok(()) => compiled.bytecode = Some(path.display().to_string()),
                    Err(error) => {
                        let message = format!("{}: {error}", path.display());
                        compiled.error = Some(Failure::new("compile", message));
                    }
                }
            }
        }
        Err(failure) => compiled.error = Some(failure),
    }
    compiled
}

fn build(
    request: &Request,
    modules: &[syn::ItemMod],
    wanted: &Wanted,
) -> Result<(String, Vec<u8>), Failure> {
    let Some(module) = modules.iter().find(|module| has_function(module, &wanted.entry)) else {
        let message = format!("no function `{}` in any module of the file", wanted.entry);
        return Err(Failure::new("compile", message));
    };
    let name = module.ident.to_string();
    let mut strides: Vec<(&str, Vec<i32>)> = Vec::new();
    let mut specs: Vec<(&str, SpecializationBits)> = Vec::new();
    let mut hints: Vec<(&str, DivHint)> = Vec::new();
    for (parameter, arg) in &wanted.args {
        match arg {
            Arg::Tensor { address, shape, strides: steps } => {
                let shape: Vec<i32> = shape.iter().map(|&extent| extent as i32).collect();
                let steps: Vec<i32> = steps.iter().map(|&step| step as i32).collect();
                let spec = compute_spec(*address, &shape, &steps, 0);
                let known = spec.stride_one.iter().map(|&one| if one { 1 } else { -1 });
                strides.push((parameter, known.collect()));
                specs.push((parameter, spec));
            }
            Arg::Pointer { address } => hints.push((parameter, DivHint::from_ptr(*address))),
            Arg::Scalar { value } => hints.push((parameter, DivHint::from_value(*value as i32))),
            Arg::Opaque {} => {}
        }
    }
    let strides: Vec<(&str, &[i32])> = strides.iter().map(|(n, s)| (*n, s.as_slice())).collect();
    let options = CompileOptions {
        occupancy: wanted.occupancy,
        num_cta_in_cga: wanted.num_ctas,
        max_divisibility: wanted.max_divisibility,
    };
    let (ast, file) = (module.clone(), request.file.clone());
    let label: &'static str = Box::leak(name.clone().into_boxed_str());
    let described = move || {
        let base = SpanBase::new(file.clone(), 1, 0);
        let mut described = Module::with_span_base(label, ast.clone(), base);
        described.set_absolute_path(format!("kernel::{label}"));
        described
    };
    guarded(|| {
        let artifacts = KernelCompiler::new(described, &name, &wanted.entry)
            .generics(wanted.generics.clone())
            .target(&request.gpu)
            .strides(&strides)
            .spec_args(&specs)
            .scalar_hints(&hints)
            .options(options)
            .compile()?;
        Ok((artifacts.ir_text(), artifacts.bytecode()?))
    })
}

fn has_function(module: &syn::ItemMod, name: &str) -> bool {
    let items = module.content.iter().flat_map(|(_, items)| items);
    items.into_iter().any(|item| matches!(item, syn::Item::Fn(f) if f.sig.ident == name))
}

/// Runs the compiler, with its errors and its panics as failures.
fn guarded<T>(work: impl FnOnce() -> Result<T, JITError>) -> Result<T, Failure> {
    let place = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&place);
    std::panic::set_hook(Box::new(move |panic| {
        *seen.lock().expect("one panic at a time") = panic.to_string();
    }));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let _ = std::panic::take_hook();
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(JITError::Located(message, place))) if place.is_known() => Err(Failure {
            kind: "compile",
            message,
            line: Some(place.line),
            column: Some(place.column + 1),
        }),
        Ok(Err(error)) => Err(Failure::new("compile", error.to_string())),
        Err(_) => Err(Failure::new("panic", place.lock().expect("no writer left").clone())),
    }
}
