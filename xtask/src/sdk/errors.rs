//! The programs' errors.

use anchor_lang_idl::types::{Idl, IdlErrorCode};
use anyhow::Result;

use super::program::Module;
use super::{SourceFile, docs, names};

/// Generates the enum of the program's errors, if there are any.
pub(super) fn generate(idl: &Idl) -> Result<Option<Module>> {
    if idl.errors.is_empty() {
        return Ok(None);
    }
    let name = format!("{}Error", names::pascal(&idl.metadata.name));
    let source = format!(
        "//! The program's errors.\n\nuse core::fmt;\n\n{}\n{}\n{}",
        definition(&name, &idl.errors),
        methods(&name, &idl.errors),
        traits(&name)
    );
    Ok(Some(Module {
        name: "errors",
        files: vec![SourceFile { path: "errors.rs".to_owned(), source }],
        exports: vec![name],
    }))
}

fn definition(name: &str, errors: &[IdlErrorCode]) -> String {
    let variants: String = errors
        .iter()
        .map(|error| {
            format!(
                "/// {}\n{} = {},\n",
                docs::capitalise(message(error)),
                names::pascal(&error.name),
                error.code
            )
        })
        .collect();
    format!(
        "/// The errors that the program returns, by the code that a failed transaction carries.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum {name} {{
            {variants}
        }}
        "
    )
}

fn methods(name: &str, errors: &[IdlErrorCode]) -> String {
    let all: String = errors.iter().map(|error| format!("Self::{},", names::pascal(&error.name))).collect();
    let arms = |value: fn(&IdlErrorCode) -> &str| -> String {
        errors
            .iter()
            .map(|error| format!("Self::{} => {:?},\n", names::pascal(&error.name), value(error)))
            .collect()
    };
    let names = arms(|error| &error.name);
    let messages = arms(message);
    format!(
        "impl {name} {{
            /// Every error, in the order of the codes.
            pub const ALL: &'static [Self] = &[{all}];

            /// The code that a failed transaction carries.
            pub const fn code(self) -> u32 {{
                self as u32
            }}

            /// The error with this code, if the program has one.
            pub fn from_code(code: u32) -> Option<Self> {{
                Self::ALL.iter().copied().find(|error| error.code() == code)
            }}

            /// The error's name in the IDL.
            pub const fn name(self) -> &'static str {{
                match self {{
                    {names}
                }}
            }}

            /// What the program says about the error.
            pub const fn message(self) -> &'static str {{
                match self {{
                    {messages}
                }}
            }}
        }}
        "
    )
}

fn traits(name: &str) -> String {
    format!(
        "impl fmt::Display for {name} {{
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {{
                formatter.write_str(self.message())
            }}
        }}

        impl core::error::Error for {name} {{}}
        "
    )
}

fn message(error: &IdlErrorCode) -> &str {
    error.msg.as_deref().unwrap_or(&error.name)
}
