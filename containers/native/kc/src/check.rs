//! Reads a kernel.rs as a syntax tree: its modules and entries, and what must not be in it.

use quote::ToTokens;
use serde::Serialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::entry_rule::{ALLOWED, broken};
use crate::names::{Names, unraw};
use crate::report::{Finding, cutile_version};

/// Macros that a kernel may call.
const MACROS: [&str; 4] = ["const_shape", "const_array", "cuda_tile_print", "cuda_tile_assert"];
/// Attributes that a kernel file may carry, by their last segment.
const ATTRIBUTES: [&str; 8] =
    ["doc", "allow", "expect", "warn", "inline", "module", "entry", "rustfmt"];
/// Crates that a kernel's paths may begin with.
const ROOTS: [&str; 4] = ["cutile", "half", "self", "Self"];

#[derive(Serialize)]
pub struct Answer {
    cutile: String,
    modules: Vec<ModuleView>,
    pub findings: Vec<Finding>,
}

#[derive(Serialize)]
struct ModuleView {
    name: String,
    line: usize,
    entries: Vec<EntryView>,
}

#[derive(Serialize)]
struct EntryView {
    name: String,
    line: usize,
    unsafe_fn: bool,
    generics: Vec<GenericView>,
    params: Vec<ParamView>,
}

#[derive(Serialize)]
struct GenericView {
    name: String,
    /// `type`, or the type of a const generic.
    kind: String,
}

#[derive(Serialize)]
struct ParamView {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    line: usize,
    column: usize,
}

/// Everything that can be said about a file; what is not Rust is a finding too.
pub fn check(path: &str, text: &str) -> Answer {
    let mut answer =
        Answer { cutile: cutile_version(), modules: Vec::new(), findings: Vec::new() };
    match syn::parse_file(text) {
        Ok(file) => {
            let names = Names::of(&file);
            let mut reader = Reader { names: &names, answer: &mut answer, inside: false };
            reader.read(&file);
        }
        Err(error) => {
            let start = error.span().start();
            answer.findings.push(Finding {
                line: start.line,
                column: start.column + 1,
                construct: path.to_string(),
                message: format!("not Rust: {error}"),
                advice: "correct the syntax".to_string(),
            });
        }
    }
    answer
}

struct Reader<'a> {
    names: &'a Names,
    answer: &'a mut Answer,
    /// Within a `#[cutile::module]`.
    inside: bool,
}

impl Reader<'_> {
    fn read(&mut self, file: &syn::File) {
        for item in &file.items {
            match item {
                syn::Item::Mod(module) if has_attribute(&module.attrs, "module") => {}
                syn::Item::Use(_) => {}
                other => self.found(
                    other,
                    "a kernel file holds `#[cutile::module]` modules only",
                    "move it into the module or into the host code",
                ),
            }
        }
        self.visit_file(file);
        if self.answer.modules.iter().all(|module| module.entries.is_empty()) {
            self.found(file, "no `#[cutile::entry]` function", "write the kernel's entry");
        }
    }

    fn found<T: Spanned + ToTokens>(&mut self, node: &T, message: &str, advice: &str) {
        let start = node.span().start();
        self.answer.findings.push(Finding {
            line: start.line.max(1),
            column: start.column + 1,
            construct: clip(&node.to_token_stream().to_string()),
            message: message.to_string(),
            advice: advice.to_string(),
        });
    }

    fn entry(&mut self, function: &syn::ItemFn) {
        let signature = &function.sig;
        for input in &signature.inputs {
            let reason = match input {
                syn::FnArg::Typed(typed) => broken(&typed.ty, self.names),
                syn::FnArg::Receiver(_) => Some("an entry has no receiver".to_string()),
            };
            if let Some(reason) = reason {
                self.found(input, &reason, ALLOWED);
            }
        }
        let view = EntryView {
            name: unraw(&signature.ident),
            line: signature.ident.span().start().line,
            unsafe_fn: signature.unsafety.is_some(),
            generics: signature.generics.params.iter().map(generic).collect(),
            params: signature.inputs.iter().map(parameter).collect(),
        };
        match self.answer.modules.last_mut() {
            Some(module) if self.inside => module.entries.push(view),
            _ => self.found(
                &signature.ident,
                "an entry outside of a `#[cutile::module]`",
                "move it into the module",
            ),
        }
    }

    /// A path's first segment must not lead out of the kernel language.
    fn root(&mut self, first: &syn::Ident, global: bool, node: &(impl Spanned + ToTokens)) {
        let name = unraw(first);
        let foreign = ["std", "core", "alloc", "crate", "super", "libc", "proc_macro"];
        if global || (foreign.contains(&name.as_str())) {
            self.found(
                node,
                "a path that leads out of the kernel language",
                "use what `cutile::core` offers",
            );
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let kernels = has_attribute(&module.attrs, "module");
        if module.content.is_none() {
            self.found(module, "a module in another file", "write the module's body here");
        }
        if kernels {
            self.answer.modules.push(ModuleView {
                name: unraw(&module.ident),
                line: module.ident.span().start().line,
                entries: Vec::new(),
            });
        }
        let outer = self.inside;
        self.inside = outer || kernels;
        visit::visit_item_mod(self, module);
        self.inside = outer;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if let Some(abi) = &function.sig.abi {
            self.found(abi, "a function with a foreign ABI", "write a plain `fn`");
        }
        if has_attribute(&function.attrs, "entry") {
            self.entry(function);
        }
        visit::visit_item_fn(self, function);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let last = attribute.path().segments.last().map(|segment| unraw(&segment.ident));
        let first = attribute.path().segments.first().map(|segment| unraw(&segment.ident));
        let known = last.as_deref().is_some_and(|name| ATTRIBUTES.contains(&name));
        let tool = attribute.path().segments.len() == 1 || first.as_deref() == Some("cutile");
        if !known || !tool {
            self.found(attribute, "this attribute may not be used in a kernel file", "remove it");
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let last = call.path.segments.last().map(|segment| unraw(&segment.ident));
        if !last.as_deref().is_some_and(|name| MACROS.contains(&name)) {
            self.found(
                call,
                "this macro may not be used in a kernel file",
                "write out what it stands for; const_shape! and const_array! are allowed",
            );
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        self.found(item, "a macro in item position can hide an entry", "write the items out");
    }

    fn visit_item_foreign_mod(&mut self, item: &'ast syn::ItemForeignMod) {
        self.found(item, "an extern block", "kernels call `cutile::core` and nothing else");
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.found(item, "an extern crate", "use `cutile::core`");
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.found(item, "an impl block runs on the host too", "write a plain helper function");
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.found(item, "a static", "pass the value as a parameter or const generic");
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let root = match &item.tree {
            syn::UseTree::Path(path) => Some(unraw(&path.ident)),
            syn::UseTree::Name(name) => Some(unraw(&name.ident)),
            syn::UseTree::Rename(rename) => Some(unraw(&rename.ident)),
            syn::UseTree::Glob(_) | syn::UseTree::Group(_) => None,
        };
        let allowed = root.as_deref().is_some_and(|name| ROOTS.contains(&name));
        if !allowed || item.leading_colon.is_some() {
            self.found(item, "an import from outside of `cutile`", "import from `cutile::core`");
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            self.root(&first.ident, path.leading_colon.is_some(), path);
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

fn has_attribute(attributes: &[syn::Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
    })
}

fn generic(parameter: &syn::GenericParam) -> GenericView {
    match parameter {
        syn::GenericParam::Type(ty) => {
            GenericView { name: unraw(&ty.ident), kind: "type".to_string() }
        }
        syn::GenericParam::Const(constant) => GenericView {
            name: unraw(&constant.ident),
            kind: clip(&constant.ty.to_token_stream().to_string()),
        },
        syn::GenericParam::Lifetime(lifetime) => GenericView {
            name: lifetime.lifetime.to_string(),
            kind: "lifetime".to_string(),
        },
    }
}

fn parameter(input: &syn::FnArg) -> ParamView {
    let start = input.span().start();
    let (name, ty) = match input {
        syn::FnArg::Typed(typed) => {
            (typed.pat.to_token_stream().to_string(), typed.ty.to_token_stream().to_string())
        }
        syn::FnArg::Receiver(_) => ("self".to_string(), String::new()),
    };
    ParamView { name, ty, line: start.line, column: start.column + 1 }
}

fn clip(text: &str) -> String {
    let mut clipped: String = text.chars().take(80).collect();
    if clipped.len() < text.len() {
        clipped.push_str(" ..");
    }
    clipped
}
