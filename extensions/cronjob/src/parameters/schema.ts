/** Parameters of a task: what a caller may say for one run. Fields of bodies, and how they are stored. */
import { joi, matchPattern } from '@portico/sdk';

import type { Mask } from '../tasks/input/work-input.ts';

/** A value of a parameter. */
export type ParameterValue = string | number | boolean;

/** One parameter of a task, with its defaults filled in. */
export interface Parameter {
    /** As in `CRONJOB_PARAM_<NAME>`. */
    readonly name: string;
    readonly title: string | null;
    readonly type: 'text' | 'number' | 'boolean' | 'choice';
    /** Of the type `choice`. */
    readonly choices: readonly string[];
    /** Null: none. A mask stands for the stored default of a secret one, and keeps it in a write. */
    readonly default: ParameterValue | Mask | null;
    readonly required: boolean;
    /** A regular expression that fits the whole text; null for any. */
    readonly pattern: string | null;
    /** Its values are sealed and never shown. */
    readonly secret: boolean;
}

/** A parameter as bodies give it. */
export type ParameterInput = Partial<Parameter> & { readonly name: string };

/** Fills in what the parameters of a request leave out. */
export function parametersOf(given: readonly ParameterInput[]): readonly Parameter[] {
    return given.map((each) => ({
        title: null,
        type: 'text',
        choices: [],
        default: null,
        required: false,
        pattern: null,
        secret: false,
        ...each
    }));
}

/** Whether a pattern fits a whole text. One that takes too long does not: texts come from triggers, too. */
export function fits(pattern: string, text: string): boolean {
    return matchPattern(`^(?:${pattern})$`, text, 'u') === true;
}

/** Characters of a value. */
export const longestValue = 8_192;
const text = () => joi.string().pattern(/^[^\0]*$/, 'text without zero bytes');

/** A value as bodies give it. */
export const valueSchema = joi.alternatives(text().max(longestValue).allow(''), joi.number(), joi.boolean());

/** The name of a parameter. */
const parameterName = joi
    .string()
    .pattern(/^[A-Z][A-Z0-9_]{0,63}$/, 'name of a parameter')
    .required()
    .label('Name')
    .description('Capital letters, digits and underscores');

/** The field `parameters` of a task. */
export const parametersField = joi
    .array()
    .items(
        joi.object({
            name: parameterName,
            title: text().max(200).allow(null).label('Title'),
            type: joi
                .choice({
                    text: 'A text',
                    number: 'A number',
                    boolean: 'Yes or no',
                    choice: 'One of several'
                })
                .label('Type')
                .description('Default text'),
            choices: joi
                .array()
                .items(text().max(longestValue))
                .unique()
                .max(100)
                .label('Choices')
                .meta({ ui: { widget: 'lines' } }),
            default: joi
                .alternatives(
                    text().max(longestValue).allow(''),
                    joi.number(),
                    joi.boolean(),
                    joi.object({ set: joi.valid(true).required() })
                )
                .allow(null)
                .label('Default')
                .description(
                    'That of a secret one is never read back: `{ "set": true }` keeps it in a write'
                ),
            required: joi.boolean().label('Required'),
            pattern: joi
                .string()
                .max(500)
                .allow(null)
                .label('Pattern')
                .description('A regular expression that fits the whole text'),
            secret: joi.boolean().label('Secret').description('Its values are sealed and never shown')
        })
    )
    .unique('name')
    .max(20)
    .label('Parameters')
    .description(
        'What a run by hand or a trigger may say: programs get `CRONJOB_PARAM_<NAME>`, and the elements of the command that are `{{NAME}}` as a whole'
    );

/** Values by the names of parameters, as bodies give them. */
export const valuesSchema = joi.record(valueSchema).max(20).label('Parameters');

/** Whether a default stands for the stored one. */
export function isMask(value: Parameter['default']): value is Mask {
    return typeof value === 'object' && value !== null;
}
