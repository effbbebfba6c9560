//! `prewarm crds`: the CRDs that this version serves, ready for `kubectl apply -f -`.

use anyhow::bail;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames,
};
use prewarm_api::crd;

use crate::answer::Answer;

/// Print the CRDs that this version serves, ready for `kubectl apply -f -`
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prewarm crds | kubectl apply --server-side -f -
  prewarm crds imagepulljobs nodeimages")]
pub struct Args {
    /// Kinds to print, by any name that kubectl takes; all if none is named
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
}

/// Prints all definitions, or the named ones in the usual order.
pub fn run(args: &Args) -> anyhow::Result<Answer> {
    for kind in &args.kinds {
        if !crd::all().iter().any(|definition| is_named(definition, kind)) {
            bail!("no CRD is named {kind:?}; there are {}", plurals());
        }
    }
    let is_wanted = |definition: &&CustomResourceDefinition| {
        args.kinds.is_empty() || args.kinds.iter().any(|kind| is_named(definition, kind))
    };
    let documents = crd::all().iter().filter(is_wanted).map(crd::to_yaml);
    let stdout = documents.flat_map(|document| ["---\n".to_owned(), document]).collect();
    Ok(Answer::done(stdout))
}

/// Whether kubectl would accept the word for this kind: any of its names, in upper or lower case.
fn is_named(definition: &CustomResourceDefinition, word: &str) -> bool {
    let CustomResourceDefinitionNames { kind, plural, singular, short_names, .. } = &definition.spec.names;
    let full_name = definition.metadata.name.as_deref();
    let names = [Some(kind.as_str()), Some(plural), singular.as_deref(), full_name];
    let short_names = short_names.iter().flatten().map(String::as_str);
    names.into_iter().flatten().chain(short_names).any(|name| name.eq_ignore_ascii_case(word))
}

fn plurals() -> String {
    let plurals: Vec<&str> =
        crd::all().iter().map(|definition| definition.spec.names.plural.as_str()).collect();
    plurals.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds_printed(kinds: &[&str]) -> Vec<String> {
        let args = Args { kinds: kinds.iter().map(ToString::to_string).collect() };
        let answer = run(&args).unwrap();
        let documents = crate::yaml::documents(&answer.stdout);
        documents
            .map(|document| document.unwrap().value["spec"]["names"]["kind"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn all_kinds_are_printed_as_documents_of_their_own() {
        assert_eq!(kinds_printed(&[]).len(), crd::all().len());
    }

    #[test]
    fn a_kind_can_be_named_as_kubectl_names_it() {
        for name in ["imagepulljobs", "ImagePullJob", "imagepulljob", "imagepulljobs.apps.kruise.io"] {
            assert_eq!(kinds_printed(&[name]), ["ImagePullJob"], "{name}");
        }
        assert_eq!(kinds_printed(&["acj"]), ["AdvancedCronJob"]);
    }

    #[test]
    fn an_unknown_kind_is_answered_with_the_known_ones() {
        let args = Args { kinds: vec!["pods".to_owned()] };
        let error = run(&args).unwrap_err().to_string();
        assert!(error.contains("imageprefetches"), "{error}");
    }
}
