"""Has the probes of sectum-ai ask whether tenants see each other, and whether erasing erases.

usage: sectum.py URL KEY...     a tenant of the probes is an organisation of Weir, with its key

A document, a trace and an entry of the search index are each a call with the text in its body, told
apart by the property Surface. A memory is a conversation. Each line of the output is a verdict.
"""

import json
import sys
import time
import urllib.error
import urllib.request

from sectum_ai.adapters import Capability, MemoryAdapter, ObservabilityAdapter, SearchIndexAdapter, VectorStoreAdapter
from sectum_ai.adapters.base import TraceHit, VectorHit
from sectum_ai.probes import confirmed_findings
from sectum_ai.probes.erasure import ErasureProbe
from sectum_ai.probes.memory_contam import MemoryContamProbe
from sectum_ai.probes.rag_entity_bleed import RagEntityBleedProbe
from sectum_ai.probes.subject_erasure import SubjectErasureProbe, SubjectManifest
from sectum_ai.probes.tenant_boundary import TenantBoundaryProbe
from sectum_ai.runner import Runner
from sectum_ai.spec import MarkerType, Surface
from sectum_ai.substrate import build_substrate, default_scenario


class Weir:
    def __init__(self, url, keys):
        self.url, self.keys = url, keys

    def ask(self, tenant, method, path, body=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method, headers={
            "Authorization": "Bearer " + self.keys[tenant], "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()}})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.loads(response.read() or "null")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def record(self, tenant, surface, name, text):
        self.ask(tenant, "POST", "/v1/responses", {"model": "echo/echo-1", "store": False, "input": text},
                 Service_Property_Surface=surface, Service_Property_Name=name)

    def records(self, tenant, surface, *conditions):
        filter = {"request_response_rmt": {"properties": {"Surface": {"equals": surface}}}}
        for condition in conditions:
            filter = {"left": filter, "operator": "and", "right": {"request_response_rmt": condition}}
        rows = self.ask(tenant, "POST", "/v1/request/query-clickhouse", {"filter": filter, "limit": 1000, "includeContent": True})["data"]
        return [(row["request_id"], json.dumps([row["request_body"], row["response_body"]])) for row in rows]

    def erase(self, tenant, surface):
        made = self.ask(tenant, "POST", "/v1/erasures", {
            "filter": {"request_response_rmt": {"properties": {"Surface": {"equals": surface}}}}, "what": "record"})["data"]
        while self.ask(tenant, "GET", "/v1/erasures/" + made["id"])["data"]["state"] != "done":
            time.sleep(0.05)

    def id_of(self, tenant, name):
        filter = {"request_response_rmt": {"properties": {"Name": {"equals": name}}}}
        for _ in range(200):
            rows = self.ask(tenant, "POST", "/v1/request/query", {"filter": filter, "limit": 1})["data"]
            if rows:
                return rows[0]["request_id"]
            time.sleep(0.05)
        raise RuntimeError(name + " is not recorded")

    def read(self, tenant, id):
        answer = self.ask(tenant, "GET", "/v1/request/" + id)
        return None if answer is None else json.dumps(answer)


class Documents(VectorStoreAdapter):
    def __init__(self, weir):
        super().__init__("weir", frozenset({Capability.PER_TENANT_NAMESPACE}))
        self.weir, self.ids = weir, {}

    def upsert(self, tenant, documents):
        for d in documents:
            self.weir.record(tenant, "documents", d.doc_id, d.content)
        for d in documents:
            self.ids[d.doc_id] = self.weir.id_of(tenant, d.doc_id)

    def query(self, tenant, text, k=5, *, user=None):  # all that the tenant sees
        return [VectorHit(tenant_id=tenant, doc_id=id, content=text, score=1.0) for id, text in self.weir.records(tenant, "documents")]

    def fetch(self, tenant, doc_id, *, user=None):
        text = self.weir.read(tenant, self.ids[doc_id])
        return None if text is None else VectorHit(tenant_id=tenant, doc_id=doc_id, content=text, score=1.0)

    def delete(self, tenant):
        self.weir.erase(tenant, "documents")

    def list_namespaces(self):
        return sorted(t.hex for t in self.weir.keys)


class Traces(ObservabilityAdapter):
    def __init__(self, weir):
        super().__init__("weir", frozenset({Capability.TRACE_SEARCH}))
        self.weir = weir

    def search_traces(self, tenant, marker):
        found = self.weir.records(tenant, "traces", {"request_body": {"contains": marker}})
        return [TraceHit(trace_id=id, project=tenant.hex, snippet=text) for id, text in found]

    def fetch_trace(self, tenant, trace_id):
        text = self.weir.read(tenant, trace_id)
        return None if text is None else TraceHit(trace_id=trace_id, project=tenant.hex, snippet=text)

    def list_projects(self):
        return sorted(t.hex for t in self.weir.keys)

    def delete(self, tenant):
        self.weir.erase(tenant, "traces")


class Search(SearchIndexAdapter):
    def __init__(self, weir):
        super().__init__("weir", frozenset({Capability.TEXT_SEARCH}))
        self.weir = weir

    def index(self, tenant, text):
        self.weir.record(tenant, "search", "entry", text)

    def search(self, tenant, query):
        return [text for _, text in self.weir.records(tenant, "search", {"request_body": {"contains": query}})]

    def delete(self, tenant):
        self.weir.erase(tenant, "search")


class Memory(MemoryAdapter):
    """Every tenant asks for every conversation: what is another's has to be refused."""

    def __init__(self, weir):
        super().__init__("weir", frozenset({Capability.PER_TENANT_MEMORY}))
        self.weir, self.all = weir, []

    def remember(self, tenant, text, *, user=None):
        made = self.weir.ask(tenant, "POST", "/v1/conversations", {"items": [{"type": "message", "role": "user", "content": text}]})
        self.all.append(made["id"])

    def recall(self, tenant, query, *, user=None):
        found = (self.weir.ask(tenant, "GET", f"/v1/conversations/{id}/items") for id in self.all)
        return [json.dumps(items) for items in found if items is not None]

    def delete(self, tenant):
        for id in self.all:
            self.weir.ask(tenant, "DELETE", "/v1/conversations/" + id)


def main(url, keys):
    substrate = build_substrate(default_scenario(seed=1))
    tenants = list(dict.fromkeys(d.tenant_id for d in substrate.documents))
    if len(tenants) > len(keys):
        raise SystemExit(f"{len(tenants)} keys are needed")
    weir = Weir(url, dict(zip(tenants, keys)))
    documents, traces, search, memory = Documents(weir), Traces(weir), Search(weir), Memory(weir)
    markers = [m for m in substrate.manifest.markers if m.marker_type is MarkerType.HARD_CANARY]
    for tenant in tenants:
        documents.upsert(tenant, [d for d in substrate.documents if d.tenant_id == tenant])
    subjects = {}
    for m in markers:
        name = "trace-" + m.marker_id
        weir.record(m.owner_tenant_id, "traces", name, "Reference: " + m.plaintext)
        search.index(m.owner_tenant_id, "Reference: " + m.plaintext)
        memory.remember(m.owner_tenant_id, "Reference: " + m.plaintext)
        subjects.setdefault(m.owner_tenant_id, []).append(weir.id_of(m.owner_tenant_id, name))

    runner = Runner(substrate, vector=documents, memory=memory, observability=traces)
    for probe in TenantBoundaryProbe(), RagEntityBleedProbe(), MemoryContamProbe():
        steps = runner.run_per_step(probe)
        leaks = confirmed_findings(f for _, findings in steps for f in findings)
        print(f"{'FAIL' if leaks or not steps else 'PASS'} {probe.id} {len(steps)} steps, {len(leaks)} leaks {[f.evidence_span for f in leaks[:3]]}")

    erased, kept = tenants[0], tenants[1]
    before = documents.query(kept, "Reference")
    probe = ErasureProbe(substrate, vector=documents, observability=traces, memory=memory, search_index=search)
    report = probe.run(erased)
    for s in report.surfaces:
        print(f"{'PASS' if s.erased else 'FAIL'} {probe.id}/{s.surface.value} {s.verdict}: {s.markers_before} before, {s.residual_after} after")
    mine = [m.plaintext for m in markers if m.owner_tenant_id == erased]
    ids = [d.doc_id for d in substrate.documents if d.tenant_id == erased]
    subject = SubjectErasureProbe(vector=documents, observability=traces, memory=memory, search_index=search)
    report = subject.verify(erased, SubjectManifest("subject", {Surface.VECTOR_DB: tuple(ids), Surface.TRACING: tuple(subjects[erased])}, {
        Surface.VECTOR_DB: tuple(mine), Surface.AGENT_MEMORY: tuple(mine), Surface.SEARCH_INDEX: tuple(mine)}))
    for s in report.surfaces:
        print(f"{'PASS' if s.erased else 'FAIL'} {subject.id}/{s.surface.value} {s.verdict}: {s.markers_before} looked for, {s.residual_after} found")
    # The judge does not ask whether more is gone than should be.
    left = documents.query(kept, "Reference")
    print(f"{'PASS' if left and left == before else 'FAIL'} others-keep-theirs {len(left)} of {len(before)}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
