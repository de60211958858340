#!/usr/bin/env python3
"""Checks manifests of `atlas launch --wrap kubernetes` against the schemas of the Kubernetes API, without a cluster.

    pip install kubernetes-validate pyyaml
    for t in h100-sxm-8 mi300x-8; do atlas launch --target $t --workload llama3.1-8b-train --wrap kubernetes --out out/$t; done
    tests/kubernetes/validate.py out [VERSION]

`kubectl --dry-run=client` asks a server for its API and cannot do this alone. Kinds without a schema (LeaderWorkerSet,
DynamoGraphDeployment) are counted and not checked. Exits 1 where a manifest is refused or none was found."""

import collections
import glob
import sys

import kubernetes_validate
import yaml

folder, version = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "1.31"
counts = collections.Counter()
for path in sorted(glob.glob(f"{folder}/**/*.yaml", recursive=True)):
    for document in filter(None, yaml.safe_load_all(open(path, encoding="utf-8"))):
        kind = f"{document.get('apiVersion')} {document.get('kind')}"
        try:
            kubernetes_validate.validate(document, version, strict=True)
            counts[kind, "valid"] += 1
        except kubernetes_validate.ValidationError as error:
            counts[kind, "refused"] += 1
            print(f"{path}: {kind}: {error.message}", file=sys.stderr)
        except (kubernetes_validate.InvalidSchemaError, kubernetes_validate.SchemaNotFoundError):
            counts[kind, "no schema"] += 1
for (kind, outcome), count in sorted(counts.items()):
    print(f"{count:4} {kind}: {outcome}")
sys.exit(not counts or any(outcome == "refused" for _, outcome in counts))
