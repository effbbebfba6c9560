//! How Helm treats definitions of a release that goes, on which `docs/migrate-openkruise.md` relies.

use std::fs;

use anyhow::ensure;
use prewarm_bed::inside;
use prewarm_testkit::ApiServer;

use crate::helm::run_on;

const CHART: &str = "apiVersion: v2\nname: other\nversion: 1.0.0\n";
/// One whose definitions are templates without a mark, as OpenKruise's are.
const DEFINITION: &str = "\
{{- if .Values.managed }}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: things.example.com }
spec:
  group: example.com
  names: { kind: Thing, listKind: ThingList, plural: things, singular: thing }
  scope: Cluster
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
{{- end }}
";

pub async fn a_marked_definition_stays_only_if_its_release_was_set_to_leave_it() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let chart = inside::directory("other-chart")?;
    fs::create_dir_all(chart.join("templates"))?;
    for (file, text) in
        [("Chart.yaml", CHART), ("values.yaml", "managed: true\n"), ("templates/crd.yaml", DEFINITION)]
    {
        fs::write(chart.join(file), text)?;
    }
    let chart = chart.display().to_string();
    for is_set in [false, true] {
        run_on(&server, &["install", "other", &chart])?;
        server.kubectl(["annotate", "crd", "things.example.com", "helm.sh/resource-policy=keep"]).await?;
        if is_set {
            run_on(&server, &["upgrade", "other", &chart, "--set", "managed=false"])?;
        }
        run_on(&server, &["uninstall", "other", "--wait"])?;
        let left =
            server.kubectl(["get", "crd", "things.example.com", "--ignore-not-found", "-o", "name"]).await?;
        ensure!(left.is_empty() != is_set, "set: {is_set}, left: {left:?}");
    }
    Ok(())
}
