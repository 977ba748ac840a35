// Runs chokidar with one watcher per file, and the settings of the tracker that
// touchmark's answers are compared with.
//
//   node chokidar.mjs PACKAGES LIST
//
// PACKAGES is the directory whose node_modules has chokidar. LIST is a file with
// one path per line. Prints `ready` once all files are watched, then the path of
// each change, one per line. Exits when its standard input is closed.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [packages, list] = process.argv.slice(2);
const chokidar = createRequire(`${packages}/`)('chokidar');
const files = readFileSync(list, 'utf8').split('\n').filter(Boolean);

const say = (line) => process.stdout.write(`${line}\n`);
const fail = (error) => {
    say(`error ${error}`);
    process.exit(1);
};

let waiting = files.length;
for (const file of files) {
    chokidar
        .watch(file, {
            persistent: true,
            ignoreInitial: true,
            atomic: true,
            awaitWriteFinish: { stabilityThreshold: 100, pollInterval: 100 },
        })
        .on('ready', () => {
            waiting -= 1;
            if (waiting === 0) say('ready');
        })
        .on('change', say)
        .on('error', fail);
}
process.stdin.on('end', () => process.exit(0)).resume();
