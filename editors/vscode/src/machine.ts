/** This machine, as `discovery` asks for it. */

import { execFile } from "node:child_process";
import { access, constants, stat } from "node:fs/promises";
import type { Machine, Outcome } from "./discovery";

/** A cold start from a network drive takes seconds; more than this is not worth waiting for. */
const PATIENCE = 20_000;

export function thisMachine(): Machine {
  return {
    platform: process.platform,
    arch: process.arch,
    musl: process.platform === "linux" && !usesGlibc(),
    env: process.env,
    isFile,
    run,
  };
}

function usesGlibc(): boolean {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime !== undefined;
}

async function isFile(path: string): Promise<boolean> {
  try {
    const [about] = await Promise.all([stat(path), access(path, constants.X_OK)]);
    return about.isFile();
  } catch {
    return false;
  }
}

function run(command: string, args: readonly string[]): Promise<Outcome> {
  const options = { timeout: PATIENCE, windowsHide: true, maxBuffer: 16 * 1024 * 1024, encoding: "utf8" as const };
  return new Promise((resolve) => {
    execFile(command, [...args], options, (error, stdout, stderr) => {
      if (error === null) {
        resolve({ status: 0, stdout, stderr });
      } else if (typeof error.code === "number") {
        resolve({ status: error.code, stdout, stderr });
      } else {
        resolve({ status: null, stdout, stderr: stderr === "" ? error.message : stderr });
      }
    });
  });
}
