// Bundles the extension into one file, `dist/extension.js`; with `--tests` the tests, each into a file of `out/test/`.
//
//     node esbuild.mjs [--production] [--watch] [--tests]
import { rmSync, readdirSync } from "node:fs";
import path from "node:path";
import esbuild from "esbuild";

const flags = new Set(process.argv.slice(2));
const production = flags.has("--production");

const shared = {
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  logLevel: "warning",
};

if (flags.has("--tests")) {
  rmSync("out", { recursive: true, force: true });
  const tests = ["unit", "client"].flatMap((folder) =>
    readdirSync(path.join("test", folder))
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => path.join("test", folder, name)),
  );
  // Tests wait for things at their top level, which only ES modules can; what they bundle may still ask for `require`.
  const banner = { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' };
  const outExtension = { ".js": ".mjs" };
  await esbuild.build({ ...shared, format: "esm", banner, outExtension, entryPoints: tests, outbase: ".", outdir: "out" });
} else {
  const options = {
    ...shared,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    minify: production,
    sourcemap: !production,
    sourcesContent: false,
  };
  if (flags.has("--watch")) {
    await (await esbuild.context(options)).watch();
  } else {
    await esbuild.build(options);
  }
}
