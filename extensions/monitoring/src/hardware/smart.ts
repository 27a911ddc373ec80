/** What `smartctl --json` says of a drive. */

/** How a drive is, as it says itself; null where it does not say. */
export interface DriveHealth {
    readonly state: 'ok' | 'warning' | 'failed' | 'standby' | 'unknown';
    /** What is wrong, or why nothing is known. */
    readonly message: string | null;
    readonly model: string | null;
    readonly serial: string | null;
    /** Degrees Celsius. */
    readonly temperature: number | null;
    /** Percent of its life that is used up; only drives of flash memory say so. */
    readonly wear: number | null;
    readonly poweredHours: number | null;
    /** Sectors that the drive has replaced, and those that it could not read lately. */
    readonly reallocatedSectors: number | null;
    readonly pendingSectors: number | null;
}

interface SmartOutput {
    readonly smartctl?: { readonly messages?: readonly { readonly string?: unknown }[] };
    readonly model_name?: unknown;
    readonly serial_number?: unknown;
    readonly smart_status?: { readonly passed?: unknown };
    readonly temperature?: { readonly current?: unknown };
    readonly power_on_time?: { readonly hours?: unknown };
    readonly endurance_used?: { readonly current_percent?: unknown };
    readonly scsi_percentage_used_endurance_indicator?: unknown;
    readonly nvme_smart_health_information_log?: Readonly<Record<string, unknown>>;
    readonly ata_smart_attributes?: {
        readonly table?: readonly {
            readonly id?: unknown;
            readonly name?: unknown;
            readonly value?: unknown;
            readonly when_failed?: unknown;
            readonly raw?: { readonly value?: unknown };
        }[];
    };
}
type Attributes = NonNullable<NonNullable<SmartOutput['ata_smart_attributes']>['table']>;

/** Attributes of ATA whose value falls from 100 to 0 as the drive wears: left life, wear levelling, media wear-out, left lifetime. */
const wearAttributes = [231, 177, 233, 202];
const reallocated = 5;
const pending = 197;
/** From here on a drive of flash memory is told to be replaced. */
const wornPercent = 90;

/** Reads the output; null when it is no output of smartctl. */
export function parseSmart(text: string): DriveHealth | null {
    let output: unknown;
    try {
        output = JSON.parse(text);
    } catch {
        return null;
    }
    return typeof output === 'object' && output !== null ? healthOf(output as SmartOutput) : null;
}

function healthOf(output: SmartOutput): DriveHealth {
    const nvme = output.nvme_smart_health_information_log ?? {};
    const table = output.ata_smart_attributes?.table;
    const attributes = Array.isArray(table) ? (table as Attributes) : [];
    const said = (output.smartctl?.messages ?? [])
        .map((each) => (typeof each.string === 'string' ? each.string : ''))
        .filter((each) => each !== '')
        .join('; ')
        .slice(0, 300);
    const values = {
        model: textOf(output.model_name),
        serial: textOf(output.serial_number),
        temperature: numberOf(output.temperature?.current),
        wear:
            numberOf(nvme['percentage_used']) ??
            numberOf(output.endurance_used?.current_percent) ??
            numberOf(output.scsi_percentage_used_endurance_indicator) ??
            wearOf(attributes),
        poweredHours: numberOf(output.power_on_time?.hours),
        reallocatedSectors: rawOf(attributes, reallocated),
        pendingSectors: rawOf(attributes, pending)
    };
    if (/\bSTANDBY\b/.test(said)) {
        return { ...values, state: 'standby', message: null };
    }
    const passed = output.smart_status?.passed;
    if (typeof passed !== 'boolean') {
        return { ...values, state: 'unknown', message: said === '' ? 'It does not say how it is' : said };
    }
    const broken = attributes.filter((each) => each.when_failed === 'now').map((each) => String(each.name));
    if (!passed) {
        const why = broken.length === 0 ? '' : ` (${broken.join(', ')})`;
        return { ...values, state: 'failed', message: `It says that it fails${why}` };
    }
    const warnings = warningsOf(values, nvme);
    return {
        ...values,
        state: warnings.length === 0 ? 'ok' : 'warning',
        message: warnings.length === 0 ? null : warnings.join('; ')
    };
}

function warningsOf(
    { wear, pendingSectors }: Pick<DriveHealth, 'wear' | 'pendingSectors'>,
    nvme: Readonly<Record<string, unknown>>
): string[] {
    const [spare, least] = [numberOf(nvme['available_spare']), numberOf(nvme['available_spare_threshold'])];
    return [
        ...(wear !== null && wear >= wornPercent ? [`${wear} % of its life is used up`] : []),
        ...((pendingSectors ?? 0) > 0 ? [`${pendingSectors} sectors could not be read lately`] : []),
        ...(spare !== null && least !== null && spare < least ? ['Its spare room is used up'] : []),
        ...((numberOf(nvme['critical_warning']) ?? 0) > 0 ? ['It gives a critical warning'] : [])
    ];
}

function wearOf(attributes: Attributes): number | null {
    for (const id of wearAttributes) {
        const value = numberOf(attributes.find((each) => each.id === id)?.value);
        if (value !== null && value <= 100) {
            return 100 - value;
        }
    }
    return null;
}

function rawOf(attributes: Attributes, id: number): number | null {
    return numberOf(attributes.find((each) => each.id === id)?.raw?.value);
}

function numberOf(value: unknown): number | null {
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}

function textOf(value: unknown): string | null {
    return typeof value === 'string' && value.trim() !== '' ? value.trim().slice(0, 100) : null;
}
