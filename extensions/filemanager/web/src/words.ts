/** Sentences of the page in the user's language: the English one is the key. */
import { panel } from './panel.ts';

const zh: Readonly<Record<string, string>> = {
    Files: '文件',
    Folder: '文件夹',
    Path: '路径',
    Name: '名称',
    Size: '大小',
    Changed: '修改时间',
    Actions: '操作',
    'No folder is open to you yet. An admin names them in the settings of the plugin.':
        '还没有对你开放的文件夹。管理员可在插件设置中指定。',
    'This folder is empty': '此文件夹为空',
    'New folder': '新建文件夹',
    'New file': '新建文件',
    'Name of the new folder': '新文件夹的名称',
    'Name of the new file': '新文件的名称',
    'New name of {name}': '{name} 的新名称',
    Upload: '上传',
    Terminal: '终端',
    Download: '下载',
    Rename: '重命名',
    Remove: '删除',
    Save: '保存',
    Close: '关闭',
    Cancel: '取消',
    Create: '创建',
    Saved: '已保存',
    Search: '搜索',
    'Show more': '显示更多',
    Parent: '上一级',
    'The file was changed meanwhile.': '文件在此期间已被修改。',
    'Take theirs': '采用对方的版本',
    'Write mine': '写入我的版本',
    'Not saved yet': '尚未保存',
    'Leave without saving?': '不保存就离开？',
    Leave: '离开',
    'This file is not text, or too large to be edited here.': '此文件不是文本，或太大而无法在此编辑。',
    'Uploads of files': '文件上传',
    Stop: '停止',
    Done: '完成',
    Failed: '失败',
    'Ctrl+Shift+Escape leaves the terminal.': '按 Ctrl+Shift+Escape 离开终端。',
    'The shell has ended with {code}.': 'Shell 已结束，退出码 {code}。',
    'The terminal was closed.': '终端已关闭。',
    'Open again': '重新打开'
};

/** A sentence; `{name}` stands for a value. */
export function t(sentence: string, values: Readonly<Record<string, string | number>> = {}): string {
    const text = panel.context.language.startsWith('zh') ? (zh[sentence] ?? sentence) : sentence;
    return text.replace(/\{(\w+)\}/g, (all, name: string) =>
        values[name] === undefined ? all : String(values[name])
    );
}

/** Bytes for a person. */
export function bytes(size: number): string {
    const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;
    const step = Math.min(units.length - 1, size < 1 ? 0 : Math.floor(Math.log10(size) / 3));
    return new Intl.NumberFormat(panel.context.language, {
        style: 'unit',
        unit: units[step] ?? 'byte',
        unitDisplay: 'short',
        maximumFractionDigits: 1
    }).format(size / 1_000 ** step);
}

/** A time for a person. */
export const time = (text: string): string =>
    new Intl.DateTimeFormat(panel.context.language, { dateStyle: 'medium', timeStyle: 'short' }).format(
        new Date(text)
    );
