//! Builders of the programs' instructions.

use std::collections::BTreeSet;

use anchor_lang_idl::types::{
    Idl, IdlField, IdlInstruction, IdlInstructionAccount, IdlInstructionAccountItem,
};
use anyhow::{Context, Result, bail, ensure};

use super::program::{Module, import};
use super::types::{self, Place};
use super::{SourceFile, docs, names};

/// Generates one file per instruction, if there are any.
pub(super) fn generate(idl: &Idl) -> Result<Option<Module>> {
    if idl.instructions.is_empty() {
        return Ok(None);
    }
    let mut root = String::from("//! Builders of the program's instructions.\n\n");
    let mut uses = String::from("\n");
    let (mut files, mut exports) = (Vec::new(), Vec::new());
    for instruction in &idl.instructions {
        let name = &instruction.name;
        let source = generate_one(instruction, idl).with_context(|| format!("instruction `{name}`"))?;
        files.push(SourceFile { path: format!("instructions/{}.rs", names::snake(name)), source });
        let own = own_exports(instruction);
        root.push_str(&format!("mod {};\n", names::identifier(name)));
        uses.push_str(&format!("pub use self::{}::{{{}}};\n", names::identifier(name), own.join(", ")));
        exports.extend(own);
    }
    files.push(SourceFile { path: "instructions/mod.rs".to_owned(), source: root + &uses });
    Ok(Some(Module { name: "instructions", files, exports }))
}

fn own_exports(instruction: &IdlInstruction) -> Vec<String> {
    let name = names::pascal(&instruction.name);
    if instruction.args.is_empty() { vec![name] } else { vec![args_name(instruction), name] }
}

fn args_name(instruction: &IdlInstruction) -> String {
    format!("{}Args", names::pascal(&instruction.name))
}

fn generate_one(instruction: &IdlInstruction, idl: &Idl) -> Result<String> {
    ensure!(instruction.returns.is_none(), "returned values are not supported");
    let accounts = accounts(instruction)?;
    let mut source = format!("//! The instruction `{}`.\n\n", instruction.name);
    source.push_str(&imports(instruction, &accounts));
    source.push_str(&account_struct(instruction, &accounts));
    if !instruction.args.is_empty() {
        source.push_str(&args_struct(instruction, idl)?);
    }
    source.push_str(&implementation(instruction, &accounts));
    Ok(source)
}

fn accounts(instruction: &IdlInstruction) -> Result<Vec<&IdlInstructionAccount>> {
    let accounts = instruction.accounts.iter().map(|item| match item {
        IdlInstructionAccountItem::Single(account) => Ok(account),
        IdlInstructionAccountItem::Composite(group) => {
            bail!("the group of accounts `{}` is not supported", group.name)
        }
    });
    accounts.collect()
}

fn imports(instruction: &IdlInstruction, accounts: &[&IdlInstructionAccount]) -> String {
    let mut defined = BTreeSet::new();
    for arg in &instruction.args {
        types::collect_defined(&arg.ty, &mut defined);
    }
    let own: Vec<_> =
        std::iter::once("ID".to_owned()).chain(defined.iter().map(|name| names::pascal(name))).collect();
    let mut lines = import(&own, 2) + "use alloc::vec;\n";
    if !instruction.args.is_empty() {
        lines.push_str("use borsh::BorshSerialize;\n");
    }
    if !accounts.is_empty() || instruction.args.iter().any(|arg| types::mentions_address(&arg.ty)) {
        lines.push_str("use solana_address::Address;\n");
    }
    let metas = if accounts.is_empty() { "" } else { "AccountMeta, " };
    lines + &format!("use solana_instruction::{{{metas}Instruction}};\n\n")
}

/// The struct of the addresses that the caller chooses. An account with a fixed address is none of them.
fn account_struct(instruction: &IdlInstruction, accounts: &[&IdlInstructionAccount]) -> String {
    let name = names::pascal(&instruction.name);
    let mut source = docs::comment(&instruction.docs, &format!("The instruction `{}`.", instruction.name));
    if !accounts.is_empty() {
        source.push_str("///\n/// # Accounts\n");
    }
    for (index, account) in accounts.iter().enumerate() {
        source.push_str(&format!("/// {index}. {}\n", account_line(account)));
    }
    source.push_str("#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n");
    let fields: String =
        accounts.iter().filter(|account| account.address.is_none()).map(|it| account_field(it)).collect();
    let body = if fields.is_empty() { ";".to_owned() } else { format!(" {{\n{fields}}}") };
    source + &format!("pub struct {name}{body}\n\n")
}

/// `[writable, signer] name: what it is`, for the list of accounts.
fn account_line(account: &IdlInstructionAccount) -> String {
    let flags = [(account.writable, "writable"), (account.signer, "signer"), (account.optional, "optional")];
    let flags: Vec<_> = flags.into_iter().filter_map(|(set, flag)| set.then_some(flag)).collect();
    let flags = if flags.is_empty() { String::new() } else { format!("`[{}]` ", flags.join(", ")) };
    let what = match &account.address {
        Some(address) => docs::sentence(&account.docs, &format!("always `{address}`")),
        None => docs::sentence(&account.docs, ""),
    };
    let what = if what.is_empty() { what } else { format!(": {what}") };
    format!("{flags}`{}`{what}", account.name)
}

fn account_field(account: &IdlInstructionAccount) -> String {
    let IdlInstructionAccount { name, docs, optional, .. } = account;
    let ty = if *optional { "Option<Address>" } else { "Address" };
    let docs = docs::comment(docs, &format!("The account `{name}`."));
    format!("{docs}pub {}: {ty},\n", names::identifier(name))
}

fn args_struct(instruction: &IdlInstruction, idl: &Idl) -> Result<String> {
    let mut fields = String::new();
    for IdlField { name, docs, ty } in &instruction.args {
        let ty = types::rust(ty, Place::Argument).with_context(|| format!("argument `{name}`"))?;
        fields.push_str(&docs::comment(docs, &format!("The argument `{name}`.")));
        fields.push_str(&format!("pub {}: {ty},\n", names::identifier(name)));
    }
    let copy = instruction.args.iter().all(|arg| types::is_copy(&arg.ty, Place::Argument, idl));
    let copy = if copy { "Clone, Copy" } else { "Clone" };
    let lifetime = if borrows(instruction) { "<'a>" } else { "" };
    Ok(format!(
        "/// The arguments of [`{}`].
        #[derive({copy}, Debug, PartialEq, Eq, BorshSerialize)]
        pub struct {}{lifetime} {{
            {fields}
        }}

        ",
        names::pascal(&instruction.name),
        args_name(instruction)
    ))
}

fn borrows(instruction: &IdlInstruction) -> bool {
    instruction.args.iter().any(|arg| types::borrows(&arg.ty))
}

fn implementation(instruction: &IdlInstruction, accounts: &[&IdlInstructionAccount]) -> String {
    let name = names::pascal(&instruction.name);
    let discriminator = &instruction.discriminator;
    let metas: String = accounts.iter().map(|account| format!("{},\n", meta(account))).collect();
    let (panics, parameter, data) = data(instruction);
    format!(
        "impl {name} {{
            /// The bytes that the instruction's data starts with.
            pub const DISCRIMINATOR: &'static [u8] = &{discriminator:?};

            /// Builds the instruction.
            {panics}pub fn instruction(&self{parameter}) -> Instruction {{
                let accounts = vec![{metas}];
                {data}
                Instruction {{ program_id: ID, accounts, data }}
            }}
        }}
        "
    )
}

/// The `# Panics` section, the parameter and the statements that make the instruction's data.
fn data(instruction: &IdlInstruction) -> (&'static str, String, &'static str) {
    if instruction.args.is_empty() {
        return ("", String::new(), "let data = Self::DISCRIMINATOR.to_vec();");
    }
    let lifetime = if borrows(instruction) { "<'_>" } else { "" };
    let panics = match borrows(instruction) {
        true => {
            "///\n/// # Panics\n/// If an argument has more than `u32::MAX` items, which no transaction could carry.\n"
        }
        false => "",
    };
    let statements = "let mut data = Self::DISCRIMINATOR.to_vec();
        borsh::to_writer(&mut data, &args).expect(\"a `Vec` takes all that an argument can encode to\");";
    (panics, format!(", args: {}{lifetime}", args_name(instruction)), statements)
}

fn meta(account: &IdlInstructionAccount) -> String {
    let constructor = if account.writable { "AccountMeta::new" } else { "AccountMeta::new_readonly" };
    let field = names::identifier(&account.name);
    let signer = account.signer;
    match &account.address {
        Some(address) => format!("{constructor}(const {{ Address::from_str_const({address:?}) }}, {signer})"),
        // The program's own address stands for an optional account that is left out.
        None if account.optional => format!(
            "self.{field}.map_or_else(|| AccountMeta::new_readonly(ID, false), |address| {constructor}(address, {signer}))"
        ),
        None => format!("{constructor}(self.{field}, {signer})"),
    }
}
