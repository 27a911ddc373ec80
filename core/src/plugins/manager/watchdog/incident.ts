/** What a plugin did to the whole process, kept in files: the process may end before its database can be written. */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A plugin blocked the panel, ended its process or took its memory. */
export interface Incident {
    readonly plugin: string;
    readonly code: 'LOOP_BLOCKED' | 'PROCESS_EXITED' | 'MEMORY_EXHAUSTED';
    /** One sentence for an admin. */
    readonly message: string;
    /** Milliseconds since 1970. */
    readonly at: number;
}

/** An incident and the file that keeps it until it was counted. */
export interface KeptIncident extends Incident {
    readonly path: string;
}

/** Writes an incident into a new file of the folder. It is durable when this returns. */
export function keepIncident(folder: string, incident: Incident): KeptIncident {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, `${incident.at}-${process.pid}-${incident.code}.json`);
    const file = openSync(path, 'wx', 0o600);
    try {
        writeSync(file, JSON.stringify(incident));
        fsyncSync(file);
    } finally {
        closeSync(file);
    }
    return { ...incident, path };
}

/** The incidents of a folder, the oldest first. A file that cannot be read, because the process ended while it was written, is left out. */
export function readIncidents(folder: string): readonly KeptIncident[] {
    return namesIn(folder)
        .flatMap((name): KeptIncident[] => {
            const path = join(folder, name);
            try {
                return [{ ...(JSON.parse(readFileSync(path, 'utf8')) as Incident), path }];
            } catch {
                return [];
            }
        })
        .sort((one, two) => one.at - two.at);
}

function namesIn(folder: string): readonly string[] {
    try {
        return readdirSync(folder).filter((name) => name.endsWith('.json'));
    } catch {
        return []; // none was ever kept
    }
}
