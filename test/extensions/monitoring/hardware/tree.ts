/** A folder with the files in which the kernel tells of hardware. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { snapshot } from '../machine.ts';

export class HardwareTree implements Disposable {
    readonly root = mkdtempSync(join(tmpdir(), 'hardware-'));

    /** Begins with everything else that a machine has. */
    constructor() {
        cpSync(snapshot('first'), this.root, { recursive: true });
    }

    write(path: string, text: string | number): void {
        const file = join(this.root, path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, `${text}\n`);
    }

    link(path: string, target: string): void {
        mkdirSync(dirname(join(this.root, path)), { recursive: true });
        symlinkSync(target, join(this.root, path));
    }

    [Symbol.dispose](): void {
        rmSync(this.root, { recursive: true, force: true });
    }
}

/** Puts a chip with sensors into the tree: values by file name. */
export function addChip(
    tree: HardwareTree,
    folder: string,
    chip: string,
    device: string,
    values: Readonly<Record<string, string | number>>
): void {
    tree.write(`sys/class/hwmon/${folder}/name`, chip);
    tree.link(`sys/class/hwmon/${folder}/device`, `../../../devices/${device}`);
    for (const [name, value] of Object.entries(values)) {
        tree.write(`sys/class/hwmon/${folder}/${name}`, value);
    }
}

/** Puts a drive into the tree. */
export function addDrive(tree: HardwareTree, name: string, rotates: boolean, model: string): void {
    tree.write(`sys/block/${name}/size`, 2_000_409_264);
    tree.write(`sys/block/${name}/queue/rotational`, rotates ? 1 : 0);
    tree.write(`sys/block/${name}/device/model`, `${model}   `);
}
