// Runs before the package is packed or published. Removes `dist`, which may have
// files that are not built any more, and copies the licences: npm leaves
// symbolic links out of a package.

import { copyFileSync, rmSync } from "node:fs";

rmSync(new URL("../dist", import.meta.url), { recursive: true, force: true });
for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) {
  copyFileSync(new URL(`../../../${name}`, import.meta.url), new URL(`../${name}`, import.meta.url));
}
