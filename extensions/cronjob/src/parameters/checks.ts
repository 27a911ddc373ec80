/** Checks of a task's parameters beyond their schema. */
import type { Draft } from '../tasks/draft.ts';
import { isMask, type Parameter } from './schema.ts';
import { parameterIn, problemOf } from './values.ts';

type Report = (path: string, message: string) => void;

/** Reports what is wrong with the parameters of a draft. @param before - null of a new task */
export function checkParameters(draft: Draft, before: Draft | null, report: Report): void {
    const { parameters, command, script, enabled } = draft;
    if (parameters.length > 0 && command === null && script === null) {
        report('parameters', 'reach programs only: this task runs none');
    }
    const elements = new Set(command?.map(parameterIn));
    const stored = new Set(
        before?.parameters.flatMap(({ name, secret, default: usual }) =>
            secret && usual !== null ? [name] : []
        )
    );
    for (const [index, parameter] of parameters.entries()) {
        const problem = problemOfParameter(parameter, elements, stored);
        if (problem !== null) {
            report(`parameters.${index}`, problem);
        } else if (enabled && parameter.required && parameter.default === null) {
            report(
                `parameters.${index}.default`,
                'is needed while the task is enabled: its schedule says no value'
            );
        }
    }
    checkElements(command ?? [], parameters, report);
}

function problemOfParameter(
    parameter: Parameter,
    elements: ReadonlySet<string | null>,
    stored: ReadonlySet<string>
): string | null {
    const { name, type, choices, pattern, secret, default: usual } = parameter;
    if ((type === 'choice') !== choices.length > 0) {
        return type === 'choice' ? 'needs choices' : 'has choices, which only the type choice has';
    }
    if (secret && type !== 'text') {
        return 'is secret, so its type is text';
    }
    if (secret && elements.has(name)) {
        return 'is secret, and arguments are seen in the list of processes: use its variable instead';
    }
    if (pattern !== null && type !== 'text') {
        return 'has a pattern, which only texts have';
    }
    if (pattern !== null && !isPattern(pattern)) {
        return 'has a pattern that is no regular expression';
    }
    if (isMask(usual)) {
        return secret && stored.has(name) ? null : 'has no default yet that could be kept';
    }
    const problem = usual === null ? null : problemOf(usual, parameter, elements);
    return problem === null ? null : `has a default that ${problem}`;
}

function checkElements(command: readonly string[], parameters: readonly Parameter[], report: Report): void {
    for (const [index, part] of command.entries()) {
        const name = parameterIn(part);
        if (name !== null && index === 0) {
            report('command.0', 'is the program, which no parameter names');
        } else if (name !== null && !parameters.some((parameter) => parameter.name === name)) {
            report(`command.${index}`, `stands for ${name}, which is no parameter of this task`);
        }
    }
}

function isPattern(pattern: string): boolean {
    try {
        new RegExp(pattern, 'u');
        return true;
    } catch {
        return false;
    }
}
