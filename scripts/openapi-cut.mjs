// Cuts an OpenAPI description down to the paths that bump/forge uses, with every
// schema that they lead to: node openapi-cut.mjs FROM TO
//
// The whole takes a validating proxy 13 seconds to load, a cut one two.
import { readFileSync, writeFileSync } from "node:fs";

const used = {
  "/app": ["get"],
  "/app/installations/{installation_id}/access_tokens": ["post"],
  "/repos/{owner}/{repo}": ["get"],
  "/repos/{owner}/{repo}/branches/{branch}": ["get"],
  "/repos/{owner}/{repo}/commits/{ref}": ["get"],
  "/repos/{owner}/{repo}/commits/{ref}/check-runs": ["get"],
  "/repos/{owner}/{repo}/commits/{ref}/status": ["get"],
  "/repos/{owner}/{repo}/forks": ["post"],
  "/repos/{owner}/{repo}/git/blobs": ["post"],
  "/repos/{owner}/{repo}/git/blobs/{file_sha}": ["get"],
  "/repos/{owner}/{repo}/git/commits": ["post"],
  "/repos/{owner}/{repo}/git/commits/{commit_sha}": ["get"],
  "/repos/{owner}/{repo}/git/ref/{ref}": ["get"],
  "/repos/{owner}/{repo}/git/refs": ["post"],
  "/repos/{owner}/{repo}/git/refs/{ref}": ["patch", "delete"],
  "/repos/{owner}/{repo}/git/trees": ["post"],
  "/repos/{owner}/{repo}/git/trees/{tree_sha}": ["get"],
  "/repos/{owner}/{repo}/installation": ["get"],
  "/repos/{owner}/{repo}/issues": ["get", "post"],
  "/repos/{owner}/{repo}/issues/comments/{comment_id}": ["patch"],
  "/repos/{owner}/{repo}/issues/{issue_number}": ["patch"],
  "/repos/{owner}/{repo}/issues/{issue_number}/assignees": ["post"],
  "/repos/{owner}/{repo}/issues/{issue_number}/comments": ["get", "post"],
  "/repos/{owner}/{repo}/issues/{issue_number}/labels": ["post"],
  "/repos/{owner}/{repo}/issues/{issue_number}/labels/{name}": ["delete"],
  "/repos/{owner}/{repo}/merge-upstream": ["post"],
  "/repos/{owner}/{repo}/pulls": ["get", "post"],
  "/repos/{owner}/{repo}/pulls/{pull_number}": ["get", "patch"],
  "/repos/{owner}/{repo}/pulls/{pull_number}/merge": ["put"],
  "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": ["post"],
  "/repos/{owner}/{repo}/pulls/{pull_number}/reviews": ["get"],
  "/repos/{owner}/{repo}/rules/branches/{branch}": ["get"],
  "/user": ["get"],
  "/users/{username}": ["get"],
};

const [from, to] = process.argv.slice(2);
const whole = JSON.parse(readFileSync(from, "utf8"));
const cut = { openapi: whole.openapi, info: whole.info, servers: [{ url: "/" }], paths: {}, components: {} };

// One name of a reference, each part unescaped as RFC 6901 has it.
const parts = (ref) => ref.slice(2).split("/").map((p) => p.replaceAll("~1", "/").replaceAll("~0", "~"));

// keep copies what ref leads to, and what that leads to.
function keep(ref) {
  const at = parts(ref);
  const name = at.pop();
  let source = whole;
  let target = cut;
  for (const part of at) {
    source = source[part];
    target = target[part] ??= {};
  }
  if (name in target) return;
  if (!(name in source)) throw new Error(`the description has no ${ref}`);
  target[name] = source[name];
  follow(source[name]);
}

function follow(node) {
  if (node === null || typeof node !== "object") return;
  // Examples are most of the bytes and say nothing that a validator needs.
  delete node.examples;
  delete node.example;
  for (const [key, value] of Object.entries(node)) {
    if (key === "$ref" && typeof value === "string") keep(value);
    else follow(value);
  }
}

for (const [path, methods] of Object.entries(used)) {
  const item = whole.paths[path];
  if (!item) throw new Error(`the description has no ${path}`);
  cut.paths[path] = {};
  if (item.parameters) cut.paths[path].parameters = item.parameters;
  for (const method of methods) {
    if (!item[method]) throw new Error(`the description has no ${method} ${path}`);
    cut.paths[path][method] = item[method];
  }
  follow(cut.paths[path]);
}
writeFileSync(to, JSON.stringify(cut));
