//! What a type's name means: `use .. as ..` renames and `type` aliases of the file.

use std::collections::HashMap;

use syn::visit::{self, Visit};

/// Renames and aliases of a whole file, by the name that a parameter may use.
#[derive(Default)]
pub struct Names {
    renamed: HashMap<String, String>,
    aliases: HashMap<String, syn::Type>,
}

impl Names {
    pub fn of(file: &syn::File) -> Self {
        let mut names = Names::default();
        names.visit_file(file);
        names
    }

    /// The name that `ident` was imported under at its origin.
    pub fn original(&self, ident: &syn::Ident) -> String {
        let mut name = unraw(ident);
        for _ in 0..8 {
            match self.renamed.get(&name) {
                Some(origin) => name = origin.clone(),
                None => break,
            }
        }
        name
    }

    /// What a `type` item says that `ident` stands for.
    pub fn alias(&self, ident: &syn::Ident) -> Option<&syn::Type> {
        self.aliases.get(&unraw(ident))
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_use_rename(&mut self, item: &'ast syn::UseRename) {
        self.renamed.insert(unraw(&item.rename), unraw(&item.ident));
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.aliases.insert(unraw(&item.ident), (*item.ty).clone());
        visit::visit_item_type(self, item);
    }

    fn visit_impl_item_type(&mut self, item: &'ast syn::ImplItemType) {
        self.aliases.insert(unraw(&item.ident), item.ty.clone());
        visit::visit_impl_item_type(self, item);
    }
}

/// The identifier without `r#`.
pub fn unraw(ident: &syn::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_string).unwrap_or(text)
}
