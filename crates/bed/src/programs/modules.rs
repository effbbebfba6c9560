//! The table of what is built.

use super::{Module, Native, NativeProgram, Program};

/// Every pinned module, the slowest build first.
pub const MODULES: &[Module] = &[
    Module {
        name: "kubernetes",
        path: "k8s.io/kubernetes",
        programs: &[
            Program { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
            Program {
                name: "kube-controller-manager",
                package: "k8s.io/kubernetes/cmd/kube-controller-manager",
            },
            Program { name: "kube-scheduler", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
            Program { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
            Program { name: "kubelet", package: "k8s.io/kubernetes/cmd/kubelet" },
        ],
        version_package: Some("k8s.io/component-base/version"),
        go_mod: include_str!("../../../../tools/kubernetes/go.mod"),
        go_sum: include_str!("../../../../tools/kubernetes/go.sum"),
        sources: &[],
        native: None,
    },
    Module {
        name: "containerd",
        path: "github.com/containerd/containerd/v2",
        programs: &[
            Program { name: "containerd", package: "github.com/containerd/containerd/v2/cmd/containerd" },
            Program {
                name: "containerd-shim-runc-v2",
                package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            },
            Program { name: "ctr", package: "github.com/containerd/containerd/v2/cmd/ctr" },
        ],
        version_package: None,
        go_mod: include_str!("../../../../tools/containerd/go.mod"),
        go_sum: include_str!("../../../../tools/containerd/go.sum"),
        sources: &[],
        native: None,
    },
    Module {
        name: "crio",
        path: "github.com/cri-o/cri-o",
        programs: &[Program { name: "crio", package: "github.com/cri-o/cri-o/cmd/crio" }],
        version_package: None,
        go_mod: include_str!("../../../../tools/crio/go.mod"),
        go_sum: include_str!("../../../../tools/crio/go.sum"),
        sources: &[],
        native: Some(Native {
            // Without `seccomp`, pods would silently run unconfined; the others replace libraries that no test needs.
            tags: &[
                "btrfs_noversion",
                "containers_image_openpgp",
                "containers_image_ostree_stub",
                "exclude_graphdriver_btrfs",
                "exclude_graphdriver_devicemapper",
                "seccomp",
            ],
            programs: &[NativeProgram {
                name: "pinns",
                sources: &["pinns/src/pinns.c", "pinns/src/sysctl.c"],
            }],
        }),
    },
    Module {
        name: "helm",
        path: "helm.sh/helm/v4",
        programs: &[Program { name: "helm", package: "helm.sh/helm/v4/cmd/helm" }],
        version_package: None,
        go_mod: include_str!("../../../../tools/helm/go.mod"),
        go_sum: include_str!("../../../../tools/helm/go.sum"),
        sources: &[],
        native: None,
    },
    Module {
        name: "registry",
        path: "github.com/distribution/distribution/v3",
        programs: &[Program { name: "registry", package: "." }],
        version_package: None,
        go_mod: include_str!("../../../../tools/registry/go.mod"),
        go_sum: include_str!("../../../../tools/registry/go.sum"),
        sources: &[("main.go", include_str!("../../../../tools/registry/main.go"))],
        native: None,
    },
    Module {
        name: "etcd",
        path: "go.etcd.io/etcd/server/v3",
        programs: &[Program { name: "etcd", package: "go.etcd.io/etcd/server/v3" }],
        version_package: None,
        go_mod: include_str!("../../../../tools/etcd/go.mod"),
        go_sum: include_str!("../../../../tools/etcd/go.sum"),
        sources: &[],
        native: None,
    },
    Module {
        name: "runc",
        path: "github.com/opencontainers/runc",
        programs: &[Program { name: "runc", package: "github.com/opencontainers/runc" }],
        version_package: None,
        go_mod: include_str!("../../../../tools/runc/go.mod"),
        go_sum: include_str!("../../../../tools/runc/go.sum"),
        sources: &[],
        // Kubelet asks for a seccomp profile for nearly every pod, and without the tag none of those would start.
        native: Some(Native { tags: &["seccomp"], programs: &[] }),
    },
    Module {
        name: "cni",
        path: "github.com/containernetworking/plugins",
        programs: &[
            Program { name: "bridge", package: "github.com/containernetworking/plugins/plugins/main/bridge" },
            Program {
                name: "host-local",
                package: "github.com/containernetworking/plugins/plugins/ipam/host-local",
            },
            Program {
                name: "loopback",
                package: "github.com/containernetworking/plugins/plugins/main/loopback",
            },
        ],
        version_package: None,
        go_mod: include_str!("../../../../tools/cni/go.mod"),
        go_sum: include_str!("../../../../tools/cni/go.sum"),
        sources: &[],
        native: None,
    },
    Module {
        name: "oldest",
        path: "k8s.io/apiextensions-apiserver",
        programs: &[Program { name: "judge-definitions", package: "." }],
        version_package: None,
        go_mod: include_str!("../../../../tools/oldest/go.mod"),
        go_sum: include_str!("../../../../tools/oldest/go.sum"),
        sources: &[("main.go", include_str!("../../../../tools/oldest/main.go"))],
        native: None,
    },
    Module {
        name: "workload",
        path: "prewarm/tools/workload",
        programs: &[Program { name: "workload", package: "." }],
        version_package: None,
        go_mod: include_str!("../../../../tools/workload/go.mod"),
        go_sum: include_str!("../../../../tools/workload/go.sum"),
        sources: &[("main.go", include_str!("../../../../tools/workload/main.go"))],
        native: None,
    },
];
