"""Names and numbers of the companion specifications that the server follows.

OPC 34100 Energy Consumption Management 1.0 (ECM), OPC 40001-1 Machinery 1.03 and OPC 40001-4
Machinery Energy Management 1.0, OPC 10000-200 Industrial Automation (IA), OPC 10000-100 Devices
(DI): numbers of nodes as in the NodeSets of the OPC Foundation, units as in UN/CEFACT
Recommendation 20.
"""

from __future__ import annotations

from dataclasses import dataclass

DI = "http://opcfoundation.org/UA/DI/"
IA = "http://opcfoundation.org/UA/IA/"
MACHINERY = "http://opcfoundation.org/UA/Machinery/"
ECM = "http://opcfoundation.org/UA/ECM/"
MACHINERY_ENERGY = "http://opcfoundation.org/UA/Machinery/Energy/"
OWN = "urn:ur_energy_model:energy"
"""Namespace of what no specification defines."""
VERSIONS: dict[str, tuple[str, str]] = {
    DI: ("1.04.0", "2022-11-03"),
    IA: ("1.01.2", "2024-02-28"),
    MACHINERY: ("1.03.0", "2023-08-01"),
    ECM: ("1.0.0", "2025-02-01"),
    MACHINERY_ENERGY: ("1.00", "2025-11-01"),
}
"""Version and date of publication of each specification."""

FUNCTIONAL_GROUP_TYPE = 1005
"""In DI."""
STATISTICS_TYPE, STATISTICS_RESET, STATISTICS_START = 1011, 7001, 6046
HAS_STATISTIC_COMPONENT = 4002
"""In IA: IStatisticsType and its children, and the reference to what it resets."""
MACHINES, ITEM_IDENTIFICATION_TYPE, MACHINE_IDENTIFICATION_TYPE = 1001, 1004, 1012
"""In Machinery."""
CONTAINS = 4003
"""In Machinery Energy: from the main metering point to one whose energy it includes."""
ACCURACY_DOMAINS, PERCENT_OF_READING, PERCENT_OF_READING_CLASSES = 5009, 5024, 6273
ACCURACY_DOMAIN_TYPE, ACCURACY_DOMAIN_TYPE_CLASSES = 1014, 6201
MEASUREMENT_TYPE, VALUE_TYPE = 1006, 2002
TAG, MEASUREMENT_RESET, MEASUREMENT_START = 6055, 7008, 6009
VALUE_TYPE_CHILDREN: dict[str, int] = {
    "AccuracyDomain": 6019,
    "AccuracyClass": 6020,
    "AccuracyClass/EnumValues": 6057,
    "AccuracyClass/ValueAsText": 6061,
    "Resource": 6017,
    "Resource/EnumValues": 6111,
    "Resource/ValueAsText": 6113,
    "MeasurementID": 6018,
    "EngineeringUnits": 6021,
}
"""In ECM."""

ELECTRICITY = 1
"""Resource of every measurement."""
RESOURCES = ("Not specified", "Electricity")
"""Those that occur here."""
UNITS_URI = "http://www.opcfoundation.org/UA/units/un/cefact"


@dataclass(frozen=True)
class Unit:
    """A unit of measurement.

    Attributes:
        code: in UN/CEFACT Recommendation 20.
        symbol, name: as displayed.
    """

    code: str
    symbol: str
    name: str

    @property
    def number(self) -> int:
        """UnitId: the characters of the code as one number (OPC 10000-8, 5.6.3)."""
        return int.from_bytes(self.code.encode(), "big")


WATT = Unit("WTT", "W", "watt")
WATT_HOUR = Unit("WHR", "W·h", "watt hour")
JOULE = Unit("JOU", "J", "joule")
SECOND = Unit("SEC", "s", "second [unit of time]")
