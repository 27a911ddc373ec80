/** A `docker run` line as a compose file. The line is read, and never run. */

import { parseReference } from '../../images/reference.ts';
import { type ComposeTree, type ComposeValue, writeCompose } from '../write.ts';
import { bareOptions, longForms, RunDraft, runOptions } from './options.ts';
import { refuse, splitCommand } from './words.ts';

/** A compose file, and what of the line it does not say. */
export interface FromRun {
    readonly compose: string;
    readonly warnings: readonly string[];
}

/** Converts a line. @throws VALIDATION_FAILED 40001 for what is no `docker run` */
export function composeFromRun(line: string): FromRun {
    const { words, expands } = splitCommand(line);
    const draft = new RunDraft();
    const rest = readOptions(argumentsOf(words), draft);
    const [image, ...command] = rest;
    if (image === undefined) {
        throw refuse('The line names no image');
    }
    if (expands) {
        draft.warnings.push('A shell would fill in what begins with $ or `: here it stays as it is written');
    }
    const name = serviceNameOf(draft.name ?? parseReference(image)?.repository.split('/').at(-1) ?? 'app');
    return { compose: writeCompose(fileOf(draft, name, image, command)), warnings: draft.warnings };
}

/** What follows `docker run`. */
function argumentsOf(words: readonly string[]): readonly string[] {
    const start = words.findIndex((word) => !['$', '#', 'sudo'].includes(word));
    const [program = '', ...rest] = words.slice(Math.max(0, start));
    const named = ['docker', 'podman'].includes(program.split('/').at(-1) ?? '');
    const [first, ...more] = rest[0] === 'container' ? rest.slice(1) : rest;
    if (!named || (first !== 'run' && first !== 'create')) {
        throw refuse('This is a line such as `docker run -p 8080:80 nginx`');
    }
    return more;
}

/** Reads the options, and gives what follows them: the image and its command. */
function readOptions(words: readonly string[], draft: RunDraft): readonly string[] {
    const left = [...words];
    while (left[0]?.startsWith('-') === true) {
        const word = left.shift() as string;
        if (word === '--') {
            break;
        }
        const long = word.startsWith('--');
        const at = word.indexOf('=');
        if (long && at > 0) {
            apply(draft, word.slice(0, at), word.slice(at + 1));
        } else if (long) {
            apply(draft, word, bareOptions.has(longForm(word)) ? 'true' : takeValue(left, word));
        } else {
            readShort(word, left, draft);
        }
    }
    return left;
}

/** `-dit`, `-p8080:80` and `-p 8080:80`. */
function readShort(word: string, left: string[], draft: RunDraft): void {
    for (let at = 1; at < word.length; at += 1) {
        const option = `-${word[at]}`;
        if (bareOptions.has(longForm(option))) {
            apply(draft, option, 'true');
            continue;
        }
        const joined = word.slice(at + 1).replace(/^=/, '');
        apply(draft, option, joined === '' ? takeValue(left, option) : joined);
        return;
    }
}

const longForm = (option: string): string =>
    Object.hasOwn(longForms, option) ? (longForms[option] as string) : option;

function takeValue(left: string[], option: string): string {
    const value = left.shift();
    if (value === undefined) {
        throw refuse(`${option} has no value`);
    }
    return value;
}

function apply(draft: RunDraft, option: string, value: string): void {
    const long = longForm(option);
    const known = Object.hasOwn(runOptions, long) ? runOptions[long] : undefined;
    if (known === undefined) {
        draft.lacks(option);
    } else {
        known(draft, value, option);
    }
}

const serviceNameOf = (text: string): string =>
    text
        .replace(/[^a-zA-Z0-9._-]+/g, '-')
        .replace(/^[^a-zA-Z0-9]+/, '')
        .slice(0, 63) || 'app';

function fileOf(draft: RunDraft, name: string, image: string, command: readonly string[]): ComposeTree {
    const { service, networks, aliases, check, ulimits, logOptions } = draft;
    const logging = service['logging'] as ComposeTree | undefined;
    const volumes = namedVolumes(service['volumes'] as readonly ComposeValue[] | undefined);
    warnOfPorts(draft);
    return {
        services: {
            [name]: {
                image,
                ...(draft.name === null ? {} : { container_name: draft.name }),
                ...(command.length === 0 ? {} : { command }),
                ...service,
                ...(Object.keys(logOptions).length === 0
                    ? {}
                    : { logging: { ...logging, options: logOptions } }),
                ...(Object.keys(check).length === 0 ? {} : { healthcheck: check }),
                ...(Object.keys(ulimits).length === 0 ? {} : { ulimits }),
                ...(networks.length === 0
                    ? {}
                    : {
                          networks: Object.fromEntries(
                              networks.map((each) => [each, aliases.length === 0 ? null : { aliases }])
                          )
                      })
            }
        },
        ...(networks.length === 0
            ? {}
            : { networks: Object.fromEntries(networks.map((each) => [each, { external: true }])) }),
        // The engine's own name, so that it is the volume that the line means.
        ...(volumes.length === 0
            ? {}
            : { volumes: Object.fromEntries(volumes.map((each) => [each, { name: each }])) })
    };
}

function namedVolumes(volumes: readonly ComposeValue[] = []): readonly string[] {
    return [
        ...new Set(
            volumes.flatMap((each) => {
                const { type = 'volume', source } = (
                    typeof each === 'string'
                        ? { source: each.includes(':') ? each.split(':')[0] : undefined }
                        : each
                ) as { readonly type?: string; readonly source?: string };
                const isName = source !== undefined && /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(source);
                return type === 'volume' && isName ? [source] : [];
            })
        )
    ];
}

function warnOfPorts({ service, warnings }: RunDraft): void {
    const ports = (service['ports'] as readonly string[] | undefined) ?? [];
    const open = ports.filter((port) => port.split(':').length === 2);
    if (open.length > 0) {
        const example = `0.0.0.0:${open[0]}`;
        warnings.push(`Ports without an address are published on 127.0.0.1; ${example} would be for all`);
    }
}
