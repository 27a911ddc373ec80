/** What systemd's scripts write down about the runs of a service: one line of fixed length, which they and the panel overwrite in place. */
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

import type { ServiceExit } from '../port.ts';
import { runsBytes } from './scripts.ts';

/** The runs of a service. */
export interface Runs {
    readonly exits: number;
    readonly failures: number;
    /** The policy is not fulfilled: it is to run. */
    readonly due: boolean;
    /** A run began and was not seen to end. */
    readonly open: boolean;
    /** Hash of the command of the latest run; `-` before the first. */
    readonly command: string;
    /** Start of the latest run, milliseconds since 1970; 0 before the first. */
    readonly startedAt: number;
    readonly lastExit: ServiceExit | null;
}

/** Those of a service that was never started. */
export const noRuns: Runs = {
    exits: 0,
    failures: 0,
    due: true,
    open: false,
    command: '-',
    startedAt: 0,
    lastExit: null
};

const form = /^(\d+) (\d+) ([01]) ([01]) (\S+) (\d+) (\d+) (\S+) (\S+) (\S+)\s*$/;

/** The runs of the service of a folder; null when systemd never had it. */
export function readRuns(folder: string): Runs | null {
    let text: string;
    try {
        text = readFileSync(join(folder, 'runs'), 'utf8');
    } catch {
        return null;
    }
    const [line, exits, failures, due, open, command = '-', startedAt, ...exit] = form.exec(text) ?? [];
    return line === undefined
        ? noRuns
        : {
              exits: Number(exits),
              failures: Number(failures),
              due: due === '1',
              open: open === '1',
              command,
              startedAt: Number(startedAt),
              lastExit: exitOf(exit)
          };
}

/** Writes them; nothing may run meanwhile. */
export function writeRuns(folder: string, runs: Runs): void {
    const { exits, failures, due, open, command, startedAt, lastExit } = runs;
    const exit =
        lastExit === null
            ? '0 - - -'
            : [
                  lastExit.at,
                  lastExit.limit === 'memory' ? 'oom-kill' : '-',
                  lastExit.code !== null ? 'exited' : lastExit.signal !== null ? 'killed' : '-',
                  lastExit.code ?? lastExit.signal?.replace(/^SIG/, '') ?? '-'
              ].join(' ');
    const line = `${exits} ${failures} ${Number(due)} ${Number(open)} ${command} ${startedAt} ${exit}`;
    overwrite(join(folder, 'runs'), `${line.padEnd(runsBytes - 1)}\n`);
}

/** Says whether the end that comes is one that the panel asks for. */
export function writeAsked(folder: string, isAsked: boolean): void {
    overwrite(join(folder, 'asked'), isAsked ? '1\n' : '0\n');
}

function exitOf([at, result, code, status = '']: readonly string[]): ServiceExit | null {
    return at === undefined || at === '0'
        ? null
        : {
              code: code === 'exited' ? Number(status) : null,
              signal: code === 'killed' || code === 'dumped' ? `SIG${status}` : null,
              ...(result === 'oom-kill' ? { limit: 'memory' as const } : {}),
              at: Number(at)
          };
}

function overwrite(path: string, text: string): void {
    const file = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
    try {
        writeSync(file, text, 0);
    } finally {
        closeSync(file);
    }
}
