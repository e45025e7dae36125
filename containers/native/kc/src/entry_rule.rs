//! The rule for kernel outputs: an entry takes no `&mut Tensor`, `MappedPartitionMut`,
//! `PartitionMut` or `Partition<&mut Tensor>`, however it is spelled.

use syn::visit::{self, Visit};

use crate::names::Names;

/// The two forms that a kernel output may have.
pub const ALLOWED: &str = "take `&Tensor<E, { [-1, ..] }>` and write through `partition_full_mut` \
in the body, or take `*mut E` and build the view with `make_tensor_view`";

/// How deep aliases of aliases are followed; deeper ones are refused.
const ALIAS_DEPTH: usize = 16;

/// Why a parameter type breaks the rule, or None.
pub fn broken(ty: &syn::Type, names: &Names) -> Option<String> {
    let mut walk = Walk { names, depth: 0, reason: None };
    walk.visit_type(ty);
    walk.reason
}

struct Walk<'n> {
    names: &'n Names,
    depth: usize,
    reason: Option<String>,
}

impl Walk<'_> {
    fn refuse(&mut self, reason: &str) {
        self.reason.get_or_insert_with(|| reason.to_string());
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
        if reference.mutability.is_some() {
            self.refuse("a kernel output is taken by `&mut`");
        }
        visit::visit_type_reference(self, reference);
    }

    fn visit_type_ptr(&mut self, pointer: &'ast syn::TypePtr) {
        if pointer.mutability.is_none() {
            self.refuse("a `*const` pointer is no kernel parameter");
        }
        visit::visit_type_ptr(self, pointer);
    }

    fn visit_type_macro(&mut self, _: &'ast syn::TypeMacro) {
        self.refuse("a macro hides what the parameter is");
    }

    fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
        self.refuse("`impl Trait` hides what the parameter is");
    }

    fn visit_type_trait_object(&mut self, _: &'ast syn::TypeTraitObject) {
        self.refuse("a trait object hides what the parameter is");
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(last) = path.segments.last() {
            let name = self.names.original(&last.ident);
            let base = name.trim_end_matches(|c: char| c == '_' || c.is_ascii_digit());
            match base {
                "MappedPartitionMut" => self.refuse("a kernel output is a `MappedPartitionMut`"),
                "PartitionMut" => self.refuse("a kernel output is a `PartitionMut`"),
                "Partition" | "BoundedPartition" => {
                    self.refuse("a partition is made in the body, never passed in");
                }
                _ => {}
            }
            if let Some(target) = self.names.alias(&last.ident) {
                if self.depth >= ALIAS_DEPTH {
                    self.refuse("aliases of aliases go too deep to be followed");
                } else {
                    self.depth += 1;
                    let target = target.clone();
                    self.reason = self.reason.take().or_else(|| {
                        let mut inner =
                            Walk { names: self.names, depth: self.depth, reason: None };
                        inner.visit_type(&target);
                        inner.reason
                    });
                    self.depth -= 1;
                }
            }
        }
        visit::visit_path(self, path);
    }
}
