/** What smartctl 7.3 writes for some drives, without the parts that are not read. */

const frame = (exit: number, messages: readonly string[] = []) => ({
    json_format_version: [1, 0],
    smartctl: {
        version: [7, 3],
        argv: ['smartctl', '--json', '--all'],
        ...(messages.length === 0
            ? {}
            : { messages: messages.map((string) => ({ string, severity: 'information' })) }),
        exit_status: exit
    }
});
const attribute = (id: number, name: string, value: number, raw: number, failed = '') => ({
    id,
    name,
    value,
    worst: value,
    thresh: 5,
    when_failed: failed,
    flags: { value: 51, string: 'PO--CK ', prefailure: true },
    raw: { value: raw, string: String(raw) }
});

export const nvme = (more: Readonly<Record<string, number>> = {}): string =>
    JSON.stringify({
        ...frame(0),
        device: { name: '/dev/nvme0', type: 'nvme', protocol: 'NVMe' },
        model_name: 'INTEL SSDPEKNW010T8',
        serial_number: 'S-1',
        smart_status: { passed: true, nvme: { value: 0 } },
        nvme_smart_health_information_log: {
            critical_warning: 0,
            temperature: 36,
            available_spare: 100,
            available_spare_threshold: 10,
            percentage_used: 7,
            media_errors: 0,
            ...more
        },
        temperature: { current: 36 },
        power_on_time: { hours: 2401 }
    });

export const failing = JSON.stringify({
    ...frame(216),
    device: { name: '/dev/sdb', type: 'sat', protocol: 'ATA' },
    model_name: 'Hitachi HDS721050DLE630',
    serial_number: 'S-2',
    rotation_rate: 7200,
    smart_status: { passed: false },
    ata_smart_attributes: {
        revision: 16,
        table: [
            attribute(5, 'Reallocated_Sector_Ct', 1, 1975, 'now'),
            attribute(197, 'Current_Pending_Sector', 100, 8)
        ]
    },
    power_on_time: { hours: 65_592 },
    temperature: { current: 25 }
});

export const flash = JSON.stringify({
    ...frame(4),
    model_name: 'Samsung SSD 860',
    serial_number: 'S-3',
    smart_status: { passed: true },
    ata_smart_attributes: {
        table: [
            attribute(5, 'Reallocated_Sector_Ct', 100, 0),
            attribute(177, 'Wear_Leveling_Count', 88, 200),
            attribute(197, 'Current_Pending_Sector', 100, 0)
        ]
    },
    power_on_time: { hours: 10 },
    temperature: { current: 31 }
});

export const asleep = JSON.stringify(frame(2, ['Device is in STANDBY mode, exit(2)']));
