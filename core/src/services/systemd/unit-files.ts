/** Files of units: where systemd finds them, and what they read. */
import {
    chmodSync,
    existsSync,
    lstatSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    renameSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { writeFilesTo } from '../supervisor/private-files.ts';
import { commandHash } from '../supervisor/service/run.ts';
import { after, before, scriptFiles } from './scripts.ts';
import { folderOfUnit, renderEnvironment, renderUnit, unitName, type UnitParts, unitPrefix } from './unit.ts';

/** The folder of the units that an admin of the machine adds. */
export const unitFolder = '/etc/systemd/system';

const inputs = /^(environment|files)-([0-9a-f]+)$/;

/** The files of the units of one panel. */
export class UnitFiles {
    /** Where the panel keeps its services. */
    readonly #folder: string;
    readonly #units: string;

    /** @param units - where units are */
    constructor(folder: string, units = unitFolder) {
        this.#folder = folder;
        this.#units = units;
    }

    /** Name of a service's unit. */
    nameOf(parts: Pick<UnitParts, 'name' | 'spec'>): string {
        return unitName(this.#folder, parts);
    }

    /** The units of this panel that have a file. */
    list(): readonly string[] {
        return this.#all().filter((name) => name.startsWith(unitPrefix(this.#folder)));
    }

    /** The units that these services had before the data folder was moved. Those of a folder that is still there belong to another panel. */
    listMoved(services: readonly UnitParts[]): readonly string[] {
        const ends = services.map((each) => this.nameOf(each).slice(unitPrefix(this.#folder).length));
        return this.#all().filter((name) => {
            const [start = ''] = /^portico-[0-9a-f]+-/.exec(name) ?? [];
            if (start === unitPrefix(this.#folder) || !ends.includes(name.slice(start.length))) {
                return false;
            }
            const folder = folderOfUnit(readFileSync(join(this.#units, name), 'utf8'));
            return folder !== null && !existsSync(folder);
        });
    }

    /** Writes what the unit of a command reads: its scripts, environment and private files. They disturb no run of an earlier command. */
    writeInputs({ folder, spec }: UnitParts): void {
        replace(join(folder, scriptFiles.before), before);
        replace(join(folder, scriptFiles.after), after);
        const { privateFiles, account } = spec.command;
        const current = commandHash(spec.command);
        const environment = join(folder, `environment-${current}`);
        writeFileSync(environment, renderEnvironment(spec), { mode: 0o600, flush: true });
        if (privateFiles !== undefined) {
            const files = join(folder, `files-${current}`);
            rmSync(files, { recursive: true, force: true });
            writeFilesTo(files, privateFiles, account);
        }
    }

    /** Removes what only earlier commands read; all of it without a spec. */
    removeInputs({ folder, spec }: Pick<UnitParts, 'folder'> & Partial<Pick<UnitParts, 'spec'>>): void {
        const current = spec === undefined ? null : commandHash(spec.command);
        const names: readonly string[] = spec === undefined ? Object.values(scriptFiles) : [];
        for (const name of readdirSync(folder)) {
            const of = inputs.exec(name)?.[2];
            if (names.includes(name) || (of !== undefined && of !== current)) {
                rmSync(join(folder, name), { recursive: true, force: true });
            }
        }
    }

    /** Writes the file of a unit; systemd must then read its units again. */
    write(parts: UnitParts): void {
        replace(join(this.#units, this.nameOf(parts)), renderUnit(parts));
    }

    /** Makes the machine start a unit when it starts, or not. */
    enable(unit: string, isEnabled: boolean): void {
        const folder = join(this.#units, 'multi-user.target.wants');
        const link = join(folder, unit);
        if (!isEnabled) {
            rmSync(link, { force: true });
        } else if (lstatSync(link, { throwIfNoEntry: false }) === undefined) {
            mkdirSync(folder, { recursive: true, mode: 0o755 });
            symlinkSync(`../${unit}`, link);
        }
    }

    /** Removes a unit. systemd forgets it when it reads its units again. */
    remove(unit: string): void {
        this.enable(unit, false);
        rmSync(join(this.#units, unit), { force: true });
    }

    #all(): readonly string[] {
        return existsSync(this.#units)
            ? readdirSync(this.#units).filter((name) => /^portico-.*\.service$/.test(name))
            : [];
    }
}

/** Gives a file another content at once, if it has another one. */
function replace(path: string, text: string): void {
    if (existsSync(path) && readFileSync(path, 'utf8') === text) {
        return;
    }
    // systemd ignores this name: it is none of a unit.
    const next = `${path}.next`;
    try {
        writeFileSync(next, text, { mode: 0o644, flush: true });
        chmodSync(next, 0o644); // whatever the umask is: systemd warns of units that others cannot read
        renameSync(next, path);
    } catch (error) {
        rmSync(next, { force: true });
        throw error;
    }
}
