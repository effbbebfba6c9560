//! The policy of allowed images, and its twin in Rust.

use anyhow::ensure;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_api::allow_list::AllowList;
use prewarm_api::crd;
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_api::reference::ImageRef;
use prewarm_testkit::{ApiServer, install, wait};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::helm::{self, render};

const SYSTEM: &str = "prewarm-system";
const MAP: &str = "prewarm-image-allow-list";

/// What is written in lists, and images that are, or are not, what it means.
const LINES: &str = "\nghcr.io\n quay.io/team/ \nnginx\ndocker.io/redis\nindex.docker.io/busybox\nbitnami/\nregistry:5000/app\nlocalhost/x\nHost/y\n# nobody\n";
const IMAGES: [&str; 33] = [
    "ghcr.io/a",
    "ghcr.io/a/b:1",
    "ghcr.io.example.com/a",
    "ghcr.io:5000/a",
    "quay.io/team/app",
    "quay.io/teams/app",
    "quay.io/team",
    "quay.io/app",
    "nginx",
    "nginx:1",
    "docker.io/nginx",
    "docker.io/library/nginx:2",
    "index.docker.io/nginx",
    "nginx/nginx",
    "redis",
    "docker.io/redis:7",
    "redis/redis",
    "busybox",
    "library/busybox",
    "bitnami/app",
    "bitnami",
    "registry:5000/app",
    "registry:5000/app/part:1",
    "registry:5000/apps",
    "registry/app",
    "localhost/x",
    "localhost/y",
    "localhost:5000/x",
    "Host/y",
    "nobody",
    "docker.io/team/nginx",
    "nginx@sha256:1111111111111111111111111111111111111111111111111111111111111111",
    "other/app:1@sha256:1111111111111111111111111111111111111111111111111111111111111111",
];

pub async fn the_policy_of_allowed_images_says_what_the_controller_says() -> anyhow::Result<()> {
    let (server, client) = installed().await?;
    let data = [("_all".to_owned(), LINES.to_owned()), ("shop".to_owned(), "other/app/".to_owned())].into();
    write(&client, &data).await?;
    let list = AllowList::read(&data);
    let (mut allowed, mut refused) = (0, 0);
    for namespace in ["shop", "default"] {
        let jobs = Api::<ImagePullJob>::namespaced(client.clone(), namespace);
        for image in IMAGES {
            let expected = list.allows(namespace, &ImageRef::parse(image)?);
            let answer = dry_run(&jobs, &json!({"image": image})).await;
            ensure!(
                answer.is_ok() == expected,
                "{image} in {namespace}: {expected} in Rust, {answer:?} there"
            );
            *(if expected { &mut allowed } else { &mut refused }) += 1;
        }
    }
    ensure!(allowed > 20 && refused > 20, "{allowed} allowed, {refused} refused");
    drop(server);
    Ok(())
}

pub async fn every_kind_obeys_the_list_and_nothing_that_goes_is_held_up() -> anyhow::Result<()> {
    let (server, client) = installed().await?;
    write(
        &client,
        &[("_all".to_owned(), "nginx".to_owned()), ("default".to_owned(), "ghcr.io".to_owned())].into(),
    )
    .await?;
    let here = "default";
    let lists = Api::<ImageListPullJob>::namespaced(client.clone(), here);
    let prefetches = Api::<ImagePrefetch>::namespaced(client.clone(), here);
    let sets = Api::<NodeImageSet>::all(client.clone());
    let nodes = Api::<NodeImage>::all(client.clone());
    let images = |images: &[&str]| json!({"images": images, "replicas": 1});
    let set = |image: &str| json!({"images": [image], "nodeName": "n1", "registryPolicy": "Default"});
    let node = |image: &str| json!({"images": {image: {"tags": [{"tag": "1", "pullPolicy": {"ttlSecondsAfterFinished": 0}}]}}});
    dry_run(&lists, &json!({"images": ["nginx", "ghcr.io/a"]})).await?;
    dry_run(&prefetches, &images(&["nginx", "ghcr.io/a"])).await?;
    dry_run(&sets, &set("nginx")).await?;
    dry_run(&nodes, &node("nginx")).await?;
    let refusals = [
        dry_run(&lists, &json!({"images": ["nginx", "quay.io/a"]})).await,
        dry_run(&prefetches, &images(&["nginx", "quay.io/a"])).await,
        // These are of the whole cluster: what one namespace may have is not for them.
        dry_run(&sets, &set("ghcr.io/a")).await,
        dry_run(&nodes, &node("ghcr.io/a")).await,
    ];
    for refusal in refusals {
        let words = refusal.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(words.contains("is not on the list of images") && words.contains(MAP), "{words}");
    }

    // A list that became shorter is in nobody's way.
    let mut job = object("kept", &json!({"images": ["ghcr.io/a"], "replicas": 1}));
    job["metadata"]["finalizers"] = json!(["example.com/kept"]);
    prefetches.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    write(&client, &[("_all".to_owned(), "nginx".to_owned())].into()).await?;
    let merge = |value: Value| Patch::Merge(value);
    let params = PatchParams::default();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    prefetches.patch("kept", &params, &merge(label)).await?;
    prefetches.patch_status("kept", &params, &merge(json!({"status": {"desiredNodes": 1}}))).await?;
    prefetches.delete("kept", &DeleteParams::default()).await?;
    prefetches.patch("kept", &params, &merge(json!({"metadata": {"finalizers": null}}))).await?;
    ensure!(prefetches.get_opt("kept").await?.is_none(), "it is still there");

    // Without the list, nothing is allowed, and the message says whose absence that is.
    Api::<ConfigMap>::namespaced(client, SYSTEM).delete(MAP, &DeleteParams::default()).await?;
    wait::until("the policy to notice that the list is gone", async || {
        Ok(dry_run(&prefetches, &images(&["nginx"])).await.is_err().then_some(()))
    })
    .await?;
    drop(server);
    Ok(())
}

async fn installed() -> anyhow::Result<(ApiServer, Client)> {
    let server = ApiServer::start().await?;
    let client = server.client()?;
    install::definitions(&client, crd::all()).await?;
    for name in [SYSTEM, "shop"] {
        helm::namespace(&server, name).await?;
    }
    let flags = ["--set", "imageAllowList.enabled=true", "--set", "imageAllowList.all={example.com}"];
    helm::apply(&server, &render("prewarm", SYSTEM, &flags)?, &[]).await?;
    let jobs = Api::<ImagePullJob>::namespaced(client.clone(), "default");
    wait::until("the policy to be in force", async || {
        Ok(dry_run(&jobs, &json!({"image": "nobody.example/app"})).await.is_err().then_some(()))
    })
    .await?;
    Ok((server, client))
}

/// Writes a list, and waits until the policy goes by it.
async fn write(client: &Client, data: &std::collections::BTreeMap<String, String>) -> anyhow::Result<()> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), SYSTEM);
    // An image that this list alone has.
    let mark =
        format!("mark.example.com/v{}", maps.get(MAP).await?.metadata.resource_version.unwrap_or_default());
    let mut data = data.clone();
    data.entry("_all".to_owned()).or_default().extend(["\n", &mark, "\n"]);
    let mut map = maps.get(MAP).await?;
    map.data = Some(data);
    maps.replace(MAP, &PostParams::default(), &map).await?;
    let jobs = Api::<ImagePullJob>::namespaced(client.clone(), "default");
    wait::until("the policy to go by the list", async || {
        Ok(dry_run(&jobs, &json!({"image": mark})).await.is_ok().then_some(()))
    })
    .await
}

fn object(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn dry_run<K>(api: &Api<K>, spec: &Value) -> anyhow::Result<()>
where
    K: kube::Resource + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let params = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&params, &serde_json::from_value(object("tried", spec))?).await?;
    Ok(())
}
