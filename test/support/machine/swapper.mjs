// Swaps folders and files below the root with links to the outside, as fast as it can, until its parent goes away.
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers';

const [root, outside] = process.argv.slice(2);
process.on('disconnect', () => process.exit(0));
process.send?.('ready');
let round = 0;
const attempt = (work) => {
    try {
        work();
    } catch {
        /* the panel was first: the next round tries again */
    }
};
const turn = () => {
    for (let times = 0; times < 20; times += 1) {
        round += 1;
        attempt(() => mkdirSync(`${root}/swap`));
        attempt(() => mkdirSync(`${root}/swap/in`));
        attempt(() => writeFileSync(`${root}/swap/in/file`, 'inside'));
        attempt(() => renameSync(`${root}/swap`, `${root}/away${round % 3}`));
        attempt(() => symlinkSync(round % 2 === 0 ? outside : `${outside}/in`, `${root}/swap`));
        attempt(() => unlinkSync(`${root}/swap`));
        attempt(() => renameSync(`${root}/away${round % 3}`, `${root}/swap`));
        attempt(() => unlinkSync(`${root}/swap/in/file`));
        attempt(() => symlinkSync(`${outside}/in/file`, `${root}/swap/in/file`));
        attempt(() => unlinkSync(`${root}/swap/in/file`));
        attempt(() => rmSync(`${root}/away${(round + 1) % 3}`, { recursive: true, force: true }));
    }
    setImmediate(turn);
};
turn();
