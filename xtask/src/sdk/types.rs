//! Types: how the IDL's become Rust's, and the types that a program defines itself.

use std::collections::BTreeSet;

use anchor_lang_idl::types::{
    Idl, IdlArrayLen, IdlDefinedFields, IdlEnumVariant, IdlField, IdlRepr, IdlReprModifier, IdlSerialization,
    IdlType, IdlTypeDef, IdlTypeDefTy,
};
use anyhow::{Context, Result, bail, ensure};

use super::program::Module;
use super::{SourceFile, docs, names};

/// Where a type stands, which decides whether it borrows and what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An argument of an instruction: only ever written, so it borrows for `'a`.
    Argument,
    /// A field of a type in Borsh's encoding: read and written, so it owns.
    Borsh,
    /// A field of a type that is read as it lies in memory.
    ZeroCopy,
}

/// The Rust type for `ty` in `place`.
pub(super) fn rust(ty: &IdlType, place: Place) -> Result<String> {
    if place == Place::ZeroCopy {
        refuse_unless_zero_copy(ty)?;
    }
    Ok(match ty {
        IdlType::Bool => "bool".to_owned(),
        IdlType::Pubkey => "Address".to_owned(),
        IdlType::Bytes => slice("u8", place),
        IdlType::String if place == Place::Argument => "&'a str".to_owned(),
        IdlType::String => "String".to_owned(),
        IdlType::Option(inner) => format!("Option<{}>", rust(inner, place)?),
        IdlType::Vec(inner) => slice(&rust(inner, place)?, place),
        IdlType::Array(inner, IdlArrayLen::Value(len)) => format!("[{}; {len}]", rust(inner, place)?),
        IdlType::Defined { name, generics } if generics.is_empty() => names::pascal(name),
        other => integer(other).with_context(|| format!("the type {other:?} is not supported"))?.to_owned(),
    })
}

fn slice(item: &str, place: Place) -> String {
    if place == Place::Argument { format!("&'a [{item}]") } else { format!("Vec<{item}>") }
}

/// The name of an integer type, which is the same in the IDL and in Rust.
fn integer(ty: &IdlType) -> Option<&'static str> {
    Some(match ty {
        IdlType::U8 => "u8",
        IdlType::I8 => "i8",
        IdlType::U16 => "u16",
        IdlType::I16 => "i16",
        IdlType::U32 => "u32",
        IdlType::I32 => "i32",
        IdlType::U64 => "u64",
        IdlType::I64 => "i64",
        IdlType::U128 => "u128",
        IdlType::I128 => "i128",
        _ => return None,
    })
}

fn refuse_unless_zero_copy(ty: &IdlType) -> Result<()> {
    match ty {
        // Not every byte is a `bool`: such a field has to be a number in the program, too.
        IdlType::Bool | IdlType::Bytes | IdlType::String | IdlType::Option(_) | IdlType::Vec(_) => {
            bail!("the type {ty:?} cannot be read as it lies in memory")
        }
        _ => Ok(()),
    }
}

/// Whether `ty` as an argument borrows something.
pub(super) fn borrows(ty: &IdlType) -> bool {
    match ty {
        IdlType::Bytes | IdlType::String | IdlType::Vec(_) => true,
        IdlType::Option(inner) | IdlType::Array(inner, _) => borrows(inner),
        _ => false,
    }
}

/// Whether `ty` in `place` can be `Copy`.
pub(super) fn is_copy(ty: &IdlType, place: Place, idl: &Idl) -> bool {
    match ty {
        IdlType::Bytes | IdlType::String | IdlType::Vec(_) => place == Place::Argument,
        IdlType::Option(inner) | IdlType::Array(inner, _) => is_copy(inner, place, idl),
        IdlType::Defined { name, .. } => {
            idl.types.iter().find(|definition| definition.name == *name).is_some_and(|definition| {
                parts(definition).into_iter().all(|part| is_copy(part, Place::Borsh, idl))
            })
        }
        _ => true,
    }
}

/// Adds the names of the program's own types that `ty` mentions to `names`.
pub(super) fn collect_defined(ty: &IdlType, names: &mut BTreeSet<String>) {
    match ty {
        IdlType::Option(inner) | IdlType::Vec(inner) | IdlType::Array(inner, _) => {
            collect_defined(inner, names)
        }
        IdlType::Defined { name, .. } => {
            names.insert(name.clone());
        }
        _ => {}
    }
}

/// Whether `ty` mentions an address.
pub(super) fn mentions_address(ty: &IdlType) -> bool {
    match ty {
        IdlType::Pubkey => true,
        IdlType::Option(inner) | IdlType::Vec(inner) | IdlType::Array(inner, _) => mentions_address(inner),
        _ => false,
    }
}

/// Every type that `definition` is directly made of.
pub(super) fn parts(definition: &IdlTypeDef) -> Vec<&IdlType> {
    match &definition.ty {
        IdlTypeDefTy::Struct { fields } => field_types(fields.as_ref()),
        IdlTypeDefTy::Enum { variants } => {
            variants.iter().flat_map(|variant| field_types(variant.fields.as_ref())).collect()
        }
        IdlTypeDefTy::Type { alias } => vec![alias],
    }
}

fn field_types(fields: Option<&IdlDefinedFields>) -> Vec<&IdlType> {
    match fields {
        None => Vec::new(),
        Some(IdlDefinedFields::Named(fields)) => fields.iter().map(|field| &field.ty).collect(),
        Some(IdlDefinedFields::Tuple(types)) => types.iter().collect(),
    }
}

/// Generates the types that are no accounts, if there are any.
pub(super) fn generate(idl: &Idl) -> Result<Option<Module>> {
    let is_account =
        |definition: &IdlTypeDef| idl.accounts.iter().any(|account| account.name == definition.name);
    let definitions: Vec<_> = idl.types.iter().filter(|definition| !is_account(definition)).collect();
    if definitions.is_empty() {
        return Ok(None);
    }
    let mut source = String::from("//! Types of the program's arguments and accounts.\n\n");
    source.push_str(&imports(&definitions));
    for definition in &definitions {
        let item = define(definition, idl).with_context(|| format!("type `{}`", definition.name))?;
        source.push_str(&format!("\n{item}"));
    }
    Ok(Some(Module {
        name: "types",
        files: vec![SourceFile { path: "types.rs".to_owned(), source }],
        exports: definitions.iter().map(|definition| names::pascal(&definition.name)).collect(),
    }))
}

fn imports(definitions: &[&IdlTypeDef]) -> String {
    let types: Vec<_> = definitions.iter().flat_map(|definition| parts(definition)).collect();
    let mut lines = String::new();
    let zero_copy = |definition: &&IdlTypeDef| definition.serialization == IdlSerialization::Bytemuck;
    if definitions.iter().any(|definition| !zero_copy(definition)) {
        lines.push_str("use borsh::{BorshDeserialize, BorshSerialize};\n");
    }
    if definitions.iter().any(zero_copy) {
        lines.push_str("use bytemuck::{Pod, Zeroable};\n");
    }
    if types.iter().any(|ty| mentions_address(ty)) {
        lines.push_str("use solana_address::Address;\n");
    }
    let text: String = types.iter().map(|ty| format!("{ty:?} ")).collect();
    if text.contains("String") {
        lines.push_str("use alloc::string::String;\n");
    }
    if text.contains("Vec") || text.contains("Bytes") {
        lines.push_str("use alloc::vec::Vec;\n");
    }
    lines
}

/// The Rust item for `definition`, without its imports.
pub(super) fn define(definition: &IdlTypeDef, idl: &Idl) -> Result<String> {
    ensure!(definition.generics.is_empty(), "generic types are not supported");
    let place = match &definition.serialization {
        IdlSerialization::Borsh => Place::Borsh,
        IdlSerialization::Bytemuck => Place::ZeroCopy,
        other => bail!("the serialization {other:?} is not supported"),
    };
    let head = head(definition, place, idl)?;
    let name = names::pascal(&definition.name);
    Ok(match &definition.ty {
        IdlTypeDefTy::Struct { fields: None } => format!("{head}pub struct {name};\n"),
        IdlTypeDefTy::Struct { fields: Some(IdlDefinedFields::Named(fields)) } => {
            format!("{head}pub struct {name} {{\n{}}}\n", named_fields(fields, place, "pub ")?)
        }
        IdlTypeDefTy::Struct { fields: Some(IdlDefinedFields::Tuple(types)) } => {
            let types: Vec<_> = types.iter().map(|ty| rust(ty, place)).collect::<Result<_>>()?;
            format!("{head}pub struct {name}(pub {});\n", types.join(", pub "))
        }
        IdlTypeDefTy::Enum { .. } if place == Place::ZeroCopy => bail!("a zero-copy type cannot be an enum"),
        IdlTypeDefTy::Enum { variants } => {
            let variants: String = variants.iter().map(enum_variant).collect::<Result<_>>()?;
            format!("{head}pub enum {name} {{\n{variants}}}\n")
        }
        IdlTypeDefTy::Type { .. } => bail!("type aliases are not supported"),
    })
}

/// The doc comment and the attributes.
fn head(definition: &IdlTypeDef, place: Place, idl: &Idl) -> Result<String> {
    let docs = docs::comment(&definition.docs, &format!("The type `{}`.", definition.name));
    let copy = parts(definition).into_iter().all(|ty| is_copy(ty, place, idl));
    let copy = if copy { "Clone, Copy" } else { "Clone" };
    let encoding = match place {
        Place::ZeroCopy => "Pod, Zeroable",
        Place::Borsh | Place::Argument => "BorshDeserialize, BorshSerialize",
    };
    let repr = repr(definition, place)?;
    Ok(format!("{docs}{repr}#[derive({copy}, Debug, PartialEq, Eq, {encoding})]\n"))
}

fn repr(definition: &IdlTypeDef, place: Place) -> Result<&'static str> {
    match (&definition.repr, place) {
        (_, Place::Borsh | Place::Argument) => Ok(""),
        (Some(IdlRepr::C(IdlReprModifier { packed: false, align: None })), _) => Ok("#[repr(C)]\n"),
        (Some(IdlRepr::C(IdlReprModifier { packed: true, align: None })), _) => Ok("#[repr(C, packed)]\n"),
        (Some(IdlRepr::Transparent), _) => Ok("#[repr(transparent)]\n"),
        (other, _) => bail!("a zero-copy type cannot have the layout {other:?}"),
    }
}

fn named_fields(fields: &[IdlField], place: Place, visibility: &str) -> Result<String> {
    let mut source = String::new();
    for IdlField { name, docs, ty } in fields {
        let ty = rust(ty, place).with_context(|| format!("field `{name}`"))?;
        source.push_str(&docs::comment(docs, &format!("The field `{name}`.")));
        source.push_str(&format!("{visibility}{}: {ty},\n", names::identifier(name)));
    }
    Ok(source)
}

fn enum_variant(variant: &IdlEnumVariant) -> Result<String> {
    let name = names::pascal(&variant.name);
    let docs = docs::comment(&[], &format!("The variant `{}`.", variant.name));
    let fields = match &variant.fields {
        None => String::new(),
        Some(IdlDefinedFields::Named(fields)) => {
            format!(" {{\n{}}}", named_fields(fields, Place::Borsh, "")?)
        }
        Some(IdlDefinedFields::Tuple(types)) => {
            let types: Vec<_> = types.iter().map(|ty| rust(ty, Place::Borsh)).collect::<Result<_>>()?;
            format!("({})", types.join(", "))
        }
    };
    Ok(format!("{docs}{name}{fields},\n"))
}
