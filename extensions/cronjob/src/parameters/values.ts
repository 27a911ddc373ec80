/** Values of parameters: which a caller may give, how a run shows them, and how programs get them. */
import { errors } from '@portico/sdk';

import type { TaskRow } from '../entities.ts';
import type { Mask } from '../tasks/input/work-input.ts';
import { fits, longestValue, type Parameter, type ParameterValue } from './schema.ts';

/** The values of a task's parameters, by name. */
export type Values = Readonly<Record<string, ParameterValue>>;
/** Values by name as they are shown: those of secret parameters are masked. */
export type ShownValues = Readonly<Record<string, ParameterValue | Mask>>;

const element = /^\{\{([A-Z][A-Z0-9_]*)\}\}$/;
const variablePrefix = 'CRONJOB_PARAM_';

/** The parameter that takes the place of a whole element of a command; null for an element that stays. */
export function parameterIn(part: string): string | null {
    return element.exec(part)?.[1] ?? null;
}

/** The parameters of a task; a mask stands for the default of a secret one. */
export function parametersOfRow({ parameters }: Pick<TaskRow, 'parameters'>): readonly Parameter[] {
    return JSON.parse(parameters) as readonly Parameter[];
}

/** What a caller must not give; empty when all is well. @param command - null of a script */
export function problemsOf(
    given: Readonly<Record<string, unknown>>,
    parameters: readonly Parameter[],
    command: readonly string[] | null
): readonly { readonly path: string; readonly message: string }[] {
    const known = new Map(parameters.map((each) => [each.name, each]));
    const elements = new Set(command?.map(parameterIn));
    const problems: { path: string; message: string }[] = [];
    const report = (name: string, message: string): void =>
        void problems.push({ path: `parameters.${name}`, message: `parameters.${name} ${message}` });
    for (const [name, value] of Object.entries(given)) {
        const parameter = known.get(name);
        const problem =
            parameter === undefined ? 'is no parameter of this task' : problemOf(value, parameter, elements);
        if (problem !== null) {
            report(name, problem);
        }
    }
    parameters
        .filter(
            ({ name, required, default: usual }) => required && usual === null && !Object.hasOwn(given, name)
        )
        .forEach(({ name }) => report(name, 'is required'));
    return problems;
}

/** What is wrong with one value; null for nothing. @param elements - names that take the place of elements of a command */
export function problemOf(
    value: unknown,
    { name, type, choices, pattern }: Parameter,
    elements: ReadonlySet<string | null>
): string | null {
    if (type === 'number' ? !Number.isFinite(value) : type === 'boolean' && typeof value !== 'boolean') {
        return type === 'number' ? 'is a number' : 'is true or false';
    }
    if (type === 'choice' && !choices.includes(value as string)) {
        return `is one of ${choices.join(', ')}`;
    }
    if (
        type === 'text' &&
        (typeof value !== 'string' || value.length > longestValue || value.includes('\0'))
    ) {
        return `is a text of at most ${longestValue} characters`;
    }
    if (typeof value === 'string' && pattern !== null && !fits(pattern, value)) {
        return `does not fit ${pattern}`;
    }
    // A program would take it for an option.
    return elements.has(name) && String(value).startsWith('-')
        ? 'takes the place of an argument, so it must not begin with -'
        : null;
}

/** @throws VALIDATION_FAILED 40001 with all problems */
export function checkValues(
    given: Readonly<Record<string, unknown>>,
    task: Pick<TaskRow, 'parameters' | 'command'>
): void {
    const command = task.command === null ? null : (JSON.parse(task.command) as string[]);
    const problems = problemsOf(given, parametersOfRow(task), command);
    if (problems.length > 0) {
        throw errors.invalid(problems);
    }
}

/** What a run is given, defaults included, as it is shown and stored; null for a task without parameters. */
export function shownValues(given: Values, task: Pick<TaskRow, 'parameters'>): ShownValues | null {
    const parameters = parametersOfRow(task);
    const entries = parameters.flatMap(({ name, default: usual, secret }) => {
        const value = Object.hasOwn(given, name) ? given[name] : usual;
        return value === null || value === undefined
            ? []
            : [[name, secret ? { set: true as const } : value] as const];
    });
    return parameters.length === 0 ? null : Object.fromEntries(entries);
}

/** The given values of secret parameters. */
export function secretValues(given: Values, task: Pick<TaskRow, 'parameters'>): Values {
    const secret = new Set(
        parametersOfRow(task).flatMap((parameter) => (parameter.secret ? [parameter.name] : []))
    );
    return Object.fromEntries(Object.entries(given).filter(([name]) => secret.has(name)));
}

/** The values as variables of a program. */
export function variablesOf(values: Values): Readonly<Record<string, string>> {
    return Object.fromEntries(
        Object.entries(values).map(([name, value]) => [variablePrefix + name, String(value)])
    );
}

/** A command with values in the place of its whole elements `{{NAME}}`. An element without a value is left out. */
export function filledIn(command: readonly string[], values: Values): readonly string[] {
    return command.flatMap((part) => {
        const name = parameterIn(part);
        if (name === null) {
            return [part];
        }
        const value = values[name];
        return value === undefined ? [] : [String(value)];
    });
}
